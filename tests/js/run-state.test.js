import assert from "node:assert/strict";
import { test } from "node:test";

import { countText, textOf } from "../../static/js/parts.js";
import { applyEvent, newRun } from "../../static/js/run-state.js";

/** Apply [seq, event] pairs; returns the last state and all outcomes. */
function play(events, state = newRun("run", "answer")) {
  const outcomes = [];
  for (const [seq, event] of events) {
    const next = applyEvent(state, seq, event);
    state = next.state;
    outcomes.push(next.outcome);
  }
  return { state, outcomes };
}

const delta = (text, offset, part = "text") => ({ kind: "delta", part, offset, text });

test("events in order become the text", () => {
  const { state } = play([
    [1, { kind: "started", model: "tiny", revision: "1", seed: 7, turn: 0 }],
    [2, delta("Hello ", 0)],
    [3, delta("world", 6)],
    [4, { kind: "finished", reason: "stop", usage: { completion_tokens: 2 }, timings: {} }],
  ]);
  assert.equal(textOf(state.parts), "Hello world");
  assert.equal(state.status, "complete");
  assert.equal(state.model, "tiny");
  assert.equal(state.usage.completion_tokens, 2);
});

test("an event that was seen before changes nothing", () => {
  const { state, outcomes } = play([[1, delta("a", 0)], [1, delta("a", 0)], [2, delta("b", 1)]]);
  assert.deepEqual(outcomes, ["applied", "duplicate", "applied"]);
  assert.equal(textOf(state.parts), "ab");
});

test("a skipped number is a gap, and what is behind it waits", () => {
  const { state, outcomes } = play([[1, delta("a", 0)], [3, delta("c", 2)]]);
  assert.deepEqual(outcomes, ["applied", "gap"]);
  const healed = play([[2, delta("b", 1)], [3, delta("c", 2)]], state);
  assert.equal(textOf(healed.state.parts), "abc");
});

test("a process that takes over may repeat characters without doubling them", () => {
  const { state } = play([
    [1, delta("Hé😀", 0)],
    [2, { kind: "resumed" }],
    [3, delta("😀 there", 2)],
  ]);
  assert.equal(textOf(state.parts), "Hé😀 there");
  assert.equal(state.resumed, true);
});

test("stop cuts after so many code points, never inside an emoji", () => {
  const { state } = play([
    [1, delta("👩‍🚀 go", 0)],
    [2, { kind: "stopped", chars: 3, usage: {}, timings: {} }],
  ]);
  assert.equal(textOf(state.parts), "👩‍🚀");
  assert.equal(countText(state.parts), 3);
  assert.equal(state.status, "stopped");
});

test("stop cuts across parts and keeps tools", () => {
  const call = { kind: "tool_call", id: "1", name: "clock", arguments: "{}" };
  const { state } = play([
    [1, delta("one ", 0)],
    [2, call],
    [3, delta("two ", 4)],
    [4, { kind: "stopped", chars: 2 }],
  ]);
  assert.deepEqual(state.parts.map((part) => part.type), ["text", "tool_call"]);
  assert.equal(textOf(state.parts), "on");
});

test("reasoning and text count apart", () => {
  const { state } = play([
    [1, delta("hmm", 0, "reasoning")],
    [2, delta("yes", 0)],
    [3, delta("!", 3)],
  ]);
  assert.deepEqual(state.parts, [
    { type: "reasoning", text: "hmm" },
    { type: "text", text: "yes!" },
  ]);
});

test("an unknown kind of event keeps its number", () => {
  const { state } = play([[1, { kind: "from_the_future" }], [2, delta("a", 0)]]);
  assert.equal(state.seq, 2);
  assert.equal(textOf(state.parts), "a");
});

test("a failure keeps the text and the words for people", () => {
  const { state } = play([
    [1, delta("so far", 0)],
    [2, { kind: "failed", code: "worker_died", message: "The engine stopped.", retry_after_s: 2 }],
  ]);
  assert.equal(textOf(state.parts), "so far");
  assert.equal(state.error.message, "The engine stopped.");
});
