// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { levelOf, meterWords, shares } from "../../static/js/meter-words.js";
import { warmthOf } from "../../static/js/warmth.js";

const meter = (prompt_tokens, more = {}) => ({
  context_tokens: 4096,
  reserve_tokens: 1024,
  prompt_tokens,
  segments: [
    { name: "system", tokens: 100 },
    { name: "draft", tokens: prompt_tokens - 100 },
  ],
  left_out: null,
  is_too_long: false,
  ...more,
});

test("the meter is calm, warm at 80 % and alarming at 95 %", () => {
  const levels = [1000, 2457, 2458, 2918, 2919, 3072].map((tokens) => levelOf(meter(tokens)));
  assert.deepEqual(levels, ["calm", "calm", "warm", "warm", "alarming", "alarming"]);
  assert.equal(meterWords(meter(1000)), "");
  assert.match(meterWords(meter(2500)), /^81%/);
  assert.match(meterWords(meter(3000)), /^97% full\. Soon the oldest messages will be left out/);
});

test("what would be left out is said before it is", () => {
  const cut = { left_out: { num_messages: 4, is_new: true } };
  assert.equal(levelOf(meter(1500, cut)), "alarming");
  assert.equal(meterWords(meter(1500, cut)), "The oldest 4 messages will be left out, so that this one fits.");
  const known = { left_out: { num_messages: 1, is_new: false } };
  assert.equal(levelOf(meter(1500, known)), "calm");
  assert.equal(meterWords(meter(1500, known)), "");
  assert.match(meterWords(meter(2600, known)), /The oldest message is left out already/);
});

test("what may be looked up has its own part, up to which it may go", () => {
  const segments = [{ name: "looked_up", tokens: 512 }, { name: "draft", tokens: 10 }];
  const [part] = shares(meter(522, { segments }));
  assert.deepEqual([part.words, part.tone, part.tokens], ["Documents, up to", "looked-up", 512]);
});

test("a message that cannot fit says both counts", () => {
  const words = meterWords(meter(5230, { segments: [], is_too_long: true }));
  assert.equal(words, "Too long for this model: 5,230 tokens, and there is room for 3,072.");
});

test("the parts make the whole context", () => {
  const parts = shares(meter(1500));
  assert.equal(parts.reduce((sum, { tokens }) => sum + tokens, 0), 4096);
  assert.deepEqual(parts.map(({ tone }) => tone), ["system", "draft", "free", "reserve"]);
});

test("a chat is warm while most of it is in the cache", () => {
  assert.equal(warmthOf(undefined), null);
  assert.equal(warmthOf({ tokens: 100, cached: 96 })?.state, "warm");
  assert.equal(warmthOf({ tokens: 100, cached: 16 })?.state, "cold");
});
