import assert from "node:assert/strict";
import { test } from "node:test";

import { dayGroup, endLine, footerLine, newsLine, phaseLine, toolLine } from "../../static/js/words.js";

test("phases tell the truth in words and numbers", () => {
  const text = (phase) => phaseLine(phase).text;
  assert.equal(text({ phase: "queued", position: 3, wait_s: 4.2 }), "Queued 3rd · about 4 s");
  assert.equal(text({ phase: "queued", position: 12, wait_s: null }), "Queued 12th");
  const reading = { phase: "prefill", done: 6210, total: 8900, cached: 5100 };
  assert.equal(text(reading), "Reading 6,210 of 8,900 tokens · 5,100 from cache");
  assert.ok(Math.abs(phaseLine(reading).progress - 0.698) < 0.001);
  assert.equal(text({ phase: "decode", tokens: 9, tokens_per_s: 60.7 }), "Writing · 61 tokens/s");
  assert.equal(text({ phase: "tool", detail: "calculator" }), "Using the calculator");
  assert.equal(text({ phase: "tool", detail: "create_image" }), "Drawing");
  assert.equal(text({ phase: "loading", progress: 0.42, detail: "weights" }),
    "Loading the model · 42% · weights");
  assert.equal(text({ phase: "asking", detail: "gpu1:8000" }), "Waiting for gpu1:8000");
  assert.equal(text({ phase: "decode", tokens: 0, tokens_per_s: 0 }), "Writing");
  assert.equal(text(null), "Sending");
});

test("the footer leaves out what is not known", () => {
  const usage = { prompt_tokens: 9, cached_tokens: 0, completion_tokens: 412 };
  const timings = { ttft_ms: 1900, decode_ms: 6754 };
  const line = (answer) => footerLine(answer).replaceAll("\u00a0", " ");
  const fromCache = { asked_at: "2026-03-04T05:06:07Z", question: "When?", similarity: 1 };
  assert.match(line({ model: "Small", from_cache: fromCache }), /^\W*Small.*from the cache, first given .*2026/);
  assert.equal(line({ model: "tiny", usage, timings }),
    "tiny · 412 tokens · 1.9 s to first · 61 tokens/s");
  assert.equal(line({ model: "tiny", timings: { stop_ms: 13.2 } }), "tiny · stopped in 14 ms");
  assert.equal(line({ model: "tiny", usage: null, timings: null }), "tiny");
  assert.equal(line({ model: "", usage: { completion_tokens: 1 } }), "1 token");
});

test("tools read as a line", () => {
  const call = { name: "calculator", arguments: '{"expression": "17 * 23"}' };
  assert.equal(toolLine(call, null), "Calculator · 17 * 23");
  assert.equal(toolLine(call, { content: "391", is_error: false }), "Calculator · 17 * 23 → 391");
  assert.equal(toolLine({ name: "clock", arguments: "{}" }, null), "Clock");
  assert.equal(toolLine({ name: "x", arguments: "{broken" }, null), "X · {broken");
  assert.ok(toolLine(call, { content: "long ".repeat(50), is_error: false }).length < 130);
});

test("an answer that did not end by itself says why", () => {
  assert.equal(endLine({ status: "complete", finish_reason: "stop" }), null);
  assert.match(endLine({ status: "failed", error: { message: "The engine died." } }), /is kept/);
  assert.match(endLine({ status: "complete", finish_reason: "length" }), /length limit/);
  assert.match(endLine({ status: "complete", finish_reason: "content_filter" }), /refused/);
});

test("conversations are grouped by the reader's days", () => {
  const now = new Date(2026, 10, 20, 9);
  const at = (...date) => dayGroup(new Date(...date).toISOString(), now);
  assert.equal(at(2026, 10, 20, 0, 1), "Today");
  assert.equal(at(2026, 10, 19, 23, 59), "Yesterday");
  assert.equal(at(2026, 10, 14), "Previous 7 days");
  assert.equal(at(2026, 9, 2), "October");
  assert.equal(at(2025, 11, 31), "December 2025");
});

test("what happened behind the scenes is told as it was", () => {
  const line = (last_answer, title = "Glass") => newsLine({ title, last_answer });
  assert.equal(line("complete"), "“Glass” has been answered.");
  assert.equal(line("failed"), "The answer in “Glass” could not be finished.");
  assert.equal(line("refused", ""), "The answer in “New chat” was refused.");
  assert.equal(line("stopped"), null);
});
