import assert from "node:assert/strict";
import { test } from "node:test";

import { Dictation, isOnDevice, recognitionOf } from "../../static/js/dictation.js";

/** The browser's engine, which a test lets hear and end. */
function engine() {
  const made = [];
  class Recognition {
    calls = [];
    constructor() {
      made.push(this);
    }
    start() {
      this.calls.push("start");
    }
    stop() {
      this.calls.push("stop");
    }
    abort() {
      this.calls.push("abort");
    }
    hears(...results) {
      this.onresult({ results: results.map(([transcript, isFinal]) => ({ isFinal, 0: { transcript } })) });
    }
    fails(error) {
      this.onerror({ error });
    }
    ends() {
      this.onend();
    }
  }
  return { Recognition, one: () => made.at(-1) };
}

function begun(language = "en", isLocal = false) {
  const { Recognition, one } = engine();
  const dictation = new Dictation(Recognition, language, isLocal);
  const heard = [];
  const ended = [];
  dictation.on("heard", (news) => heard.push(news));
  dictation.on("ended", (news) => ended.push(news));
  dictation.begin();
  return { dictation, engine: one(), heard, ended };
}

test("what is final stays, what is not is shown beside it", () => {
  const { engine, heard, ended, dictation } = begun();
  assert.equal(engine.lang, "en");
  assert.ok(engine.continuous && engine.interimResults);
  assert.ok(!("processLocally" in engine));
  engine.hears(["Hello", false]);
  engine.hears(["Hello there", true], [" how are", false]);
  engine.hears(["Hello there", true], [" how are you", true]);
  assert.deepEqual(heard, [
    { text: "", interim: "Hello" },
    { text: "Hello there", interim: "how are" },
    { text: "Hello there how are you", interim: "" },
  ]);
  dictation.finish();
  assert.deepEqual(ended, []);
  engine.ends();
  assert.deepEqual(ended, [{ text: "Hello there how are you", problem: "" }]);
  engine.ends();
  assert.equal(ended.length, 1);
});

test("an engine that ends by itself begins again, and nothing is lost", () => {
  const { engine, ended, dictation } = begun();
  engine.hears(["One", true]);
  engine.ends();
  engine.hears(["two", false]); // and ends without saying that it is final
  engine.ends();
  engine.fails("no-speech");
  engine.ends();
  assert.deepEqual(engine.calls, ["start", "start", "start", "start"]);
  engine.hears(["three", true]);
  dictation.finish();
  engine.ends();
  assert.deepEqual(ended, [{ text: "One two three", problem: "" }]);
});

test("one that hears nothing ends, and says so", () => {
  const { engine, ended } = begun();
  for (let n = 0; n < 3; n += 1) engine.ends();
  assert.deepEqual(ended, [{ text: "", problem: "no-speech" }]);
  assert.equal(engine.calls.filter((call) => call === "start").length, 3);
});

test("a problem ends it with what was understood", () => {
  const { engine, ended } = begun();
  engine.hears(["Half a", true]);
  engine.fails("network");
  engine.ends();
  assert.deepEqual(ended, [{ text: "Half a", problem: "network" }]);
  const denied = begun();
  denied.engine.fails("not-allowed");
  denied.engine.ends();
  assert.deepEqual(denied.ended, [{ text: "", problem: "not-allowed" }]);
});

test("cancelling leaves nothing, also if it comes after Done", () => {
  const { engine, ended, dictation } = begun();
  engine.hears(["Nothing", true]);
  dictation.finish();
  dictation.cancel();
  engine.fails("aborted");
  engine.ends();
  assert.deepEqual(engine.calls, ["start", "stop", "abort"]);
  assert.deepEqual(ended, [{ text: "", problem: "" }]);
});

test("some languages have no spaces", () => {
  for (const [language, text] of [["ja", "今日は晴れ"], ["zh-CN", "今日は晴れ"], ["de", "今日は 晴れ"]]) {
    const { engine, dictation } = begun(language);
    engine.hears(["今日は", true], ["晴れ", true]);
    assert.equal(dictation.text, text);
  }
});

test("sound stays here where the device understands the language", async () => {
  assert.equal(await isOnDevice({ available: async () => "available" }, "en"), true);
  assert.equal(await isOnDevice({ available: async () => "downloadable" }, "en"), false);
  assert.equal(await isOnDevice({}, "en"), false);
  assert.equal(await isOnDevice({ available: () => Promise.reject(new TypeError()) }, "en"), false);
  assert.equal(begun("en", true).engine.processLocally, true);
  assert.equal(recognitionOf({}), undefined);
});
