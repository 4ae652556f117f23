import assert from "node:assert/strict";
import { test } from "node:test";

import { ReadingAloud, spoken } from "../../static/js/reading-aloud.js";

class Utterance {
  constructor(text) {
    this.text = text;
  }
}

class Voice {
  queue = [];
  speak(utterance) {
    this.queue.push(utterance);
  }
  cancel() {
    this.queue = [];
  }
  /** Say what is next, as a device does. */
  say() {
    const next = this.queue.shift();
    next.onend?.();
    return next.text;
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
  assert.deepEqual(spoken("Hello there. How are you?", "en"), ["Hello there.", "How are you?"]);
});

test("it reads until the last piece has ended, and one text at a time", () => {
  const voice = new Voice();
  const reading = new ReadingAloud(voice, Utterance);
  reading.read("a", "One. Two.", "en");
  assert.ok(reading.isReading("a"));
  assert.equal(voice.say(), "One.");
  assert.ok(reading.isReading("a"), "the second sentence is still to come");
  reading.read("b", "Three.", "en");
  assert.ok(!reading.isReading("a"));
  assert.deepEqual(voice.queue.map(({ text }) => text), ["Three."], "nothing of the first one is left");
  voice.say();
  assert.ok(!reading.isReading("b"));
});

test("the late end of a text that was stopped does not end the next one", () => {
  const voice = new Voice();
  const reading = new ReadingAloud(voice, Utterance);
  reading.read("a", "One.", "en");
  const [old] = voice.queue;
  reading.stop();
  reading.read("b", "Two.", "en");
  old.onerror(); // engines report a cancelled utterance as an error, later
  assert.ok(reading.isReading("b"));
});

test("where a device has no voice nothing is read", () => {
  const reading = new ReadingAloud(undefined, undefined);
  assert.ok(!reading.canRead);
  reading.read("a", "One.", "en");
  assert.ok(!reading.isReading("a"));
});
