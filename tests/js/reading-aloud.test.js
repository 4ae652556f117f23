import assert from "node:assert/strict";
import { test } from "node:test";

import { ReadingAloud, spoken } from "../../static/js/reading-aloud.js";

class Voice {
  calls = [];
  speak(pieces, language) {
    this.calls.push(["speak", ...pieces, language]);
    return new Promise((resolve, reject) => Object.assign(this, { end: resolve, fail: reject }));
  }
  pause() {
    this.calls.push(["pause"]);
  }
  resume() {
    this.calls.push(["resume"]);
  }
  stop() {
    this.calls.push(["stop"]);
  }
}

test("every word is spoken once and in order, in pieces that no engine cuts off", () => {
  const long = Array.from({ length: 300 }, (_, n) => `word${n}`).join(" ");
  for (const text of ["Hello. How are you?", long, "", " \n ", "你好。今天天气很好。", `One. ${long}! Two?`]) {
    const pieces = spoken(text, "en");
    assert.equal(pieces.join(" ").replace(/\s/g, ""), text.replace(/\s/g, ""));
    assert.ok(pieces.every((piece) => piece.trim() && piece.length <= 200));
  }
});

test("a sentence is a piece of its own", () => {
  assert.deepEqual(spoken("Hello there. How are you?\nA heading\nAnd more.", "en"), ["Hello there.", "How are you?", "A heading", "And more."]);
});

test("it reads until the voice has ended, and one text at a time", async () => {
  const voice = new Voice();
  const reading = new ReadingAloud(voice);
  const first = reading.read("a", "One. Two.", "en");
  assert.ok(reading.isReading("a"));
  assert.deepEqual(voice.calls, [["speak", "One.", "Two.", "en"]]);
  const { end } = voice;
  const second = reading.read("b", "Three.", "de");
  assert.ok(!reading.isReading("a"));
  assert.deepEqual(voice.calls.slice(1), [["stop"], ["speak", "Three.", "de"]]);
  end(); // late, as some engines are
  await first;
  assert.ok(reading.isReading("b"));
  voice.end();
  await second;
  assert.ok(!reading.isReadingAny);
});

test("a pause is told, and ends with the reading", async () => {
  const voice = new Voice();
  const reading = new ReadingAloud(voice);
  let numChanges = 0;
  reading.on("changed", () => (numChanges += 1));
  reading.pause();
  assert.equal(numChanges, 0, "nothing is read");
  const read = reading.read("a", "One.", "en");
  reading.pause();
  reading.pause();
  assert.ok(reading.isPaused);
  reading.resume();
  reading.pause();
  reading.stop();
  assert.ok(!reading.isPaused);
  assert.deepEqual(voice.calls.slice(1), [["pause"], ["resume"], ["pause"], ["stop"]]);
  assert.equal(numChanges, 5);
  voice.end();
  await read;
  assert.equal(numChanges, 5);
});

test("where the voice fails it has ended, and says so", async () => {
  const voice = new Voice();
  const reading = new ReadingAloud(voice);
  const read = reading.read("a", "One.", "en");
  voice.fail(new Error("away"));
  await assert.rejects(read, /away/);
  assert.ok(!reading.isReadingAny);
});
