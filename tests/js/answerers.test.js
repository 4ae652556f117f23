import assert from "node:assert/strict";
import { test } from "node:test";

import { answererAt, answerersFor, answerersOf } from "../../static/js/answerers.js";

const MODELS = [
  { name: "vitrine-small", title: "Vitrine small", description: "Built in", state: "ready" },
  { name: "qwen3-8b", title: "Qwen3 8B", description: "Large", state: "cold" },
  { name: "broken", title: "Broken", description: "", state: "failed" },
];
const ASSISTANTS = [{ id: "a1", name: "Nina", description: "Teaches Portuguese" }];

test("an @ calls at the beginning and behind white space, and not in an address", () => {
  assert.deepEqual(answererAt("@", 1), { from: 0, query: "" });
  assert.deepEqual(answererAt("ask @Qw", 7), { from: 4, query: "qw" });
  assert.equal(answererAt("ada@example", 11), null);
  assert.equal(answererAt("@nina hello", 11), null);
});

test("what begins so comes first, and what has failed is not offered", () => {
  const all = answerersOf({ models: MODELS, assistants: ASSISTANTS });
  assert.deepEqual(all.map(({ id }) => id), ["a1", "vitrine-small", "qwen3-8b"]);
  assert.deepEqual(answerersFor(all, "qw").map(({ id }) => id), ["qwen3-8b"]);
  assert.deepEqual(answerersFor(all, "in").map(({ id }) => id), ["a1", "vitrine-small"]);
  assert.deepEqual(answerersFor(all, "zzz"), []);
});
