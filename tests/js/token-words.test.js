// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { outcomeOf } from "../../static/js/replay-button.js";
import { serverSent } from "../../static/js/server-sent.js";
import { STEP_WORDS, bits, chance, stepOf, visible } from "../../static/js/token-words.js";

test("surprise is in bits, and grows in steps", () => {
  assert.equal(bits(Math.log(0.5)), 1);
  assert.equal(bits(0), 0);
  assert.equal(bits(null), null);
  const steps = [1, 0.6, 0.4, 0.1, 0.02, 0.001].map((p) => stepOf(Math.log(p)));
  assert.deepEqual(steps, [0, 0, 1, 2, 3, 4]);
  assert.equal(STEP_WORDS.length, 5);
  assert.equal(stepOf(null), null);
});

test("chances keep what they can say", () => {
  const words = [1, 0.83, 0.042, 0.0031, 1e-9].map((p) => chance(Math.log(p)));
  assert.deepEqual(words, ["100%", "83%", "4.2%", "0.3%", "< 0.01%"]);
});

test("what has no shape can be seen", () => {
  assert.equal(visible(" a\n"), "␣a↵");
  assert.equal(visible(""), "(part of a character)");
});

test("a replay says same, or where it differs", () => {
  assert.deepEqual(outcomeOf({ kind: "same", tokens: 412, took_ms: 6200 }), [
    "same",
    "Same. All 412 tokens came again, in 6.2 s.",
  ]);
  const [, words] = outcomeOf({ kind: "differs", turn: 0, token: 56, before: "on the", was: " mat", now: null });
  assert.equal(words, "Differs at token 57. Behind “…on the”, it wrote “ mat”, and it ended now.");
});

test("server-sent events are read however they are cut", async () => {
  const text = 'event: progress\ndata: {"tokens":1}\n\nevent: same\ndata: {"tokens":2,"text":"ä\\n\\n"}\n\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 7, 1000]) {
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const events = [];
    for await (const event of serverSent(body)) events.push(event);
    assert.deepEqual(events, [{ tokens: 1 }, { tokens: 2, text: "ä\n\n" }]);
  }
});
