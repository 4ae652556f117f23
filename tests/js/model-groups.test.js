import assert from "node:assert/strict";
import { test } from "node:test";

import { groupsOf, stepFrom, stepTyped } from "../../static/js/model-groups.js";

const MODELS = [
  { name: "small", title: "Vitrine small", description: "Built in" },
  { name: "org/glass-8b", title: "Glass 8B", description: "Large" },
  { name: "org/other", title: "Other", description: "Écrit en français" },
];
const ASSISTANTS = [{ id: "a1", name: "Nina", description: "Teaches Portuguese" }];
const shown = (more = {}) => ({ models: MODELS, assistants: [], pinned: [], chosen: "", assistant: null, beside: [], ...more });
const listed = (given, wanted = "") => groupsOf(given, wanted).map(({ title, assistants, models }) => [title, ...assistants.map(({ id }) => id), ...models.map(({ name }) => name)]);

test("one kind of rows needs no title", () => {
  assert.deepEqual(listed(shown()), [["", "small", "org/glass-8b", "org/other"]]);
});

test("pinned models stand first, in the order in which they were pinned, and only there", () => {
  assert.deepEqual(listed(shown({ pinned: ["org/other", "gone", "small"] })), [["Pinned", "org/other", "small"], ["Models", "org/glass-8b"]]);
});

test("assistants stand before the models, with a title even if they alone are found", () => {
  assert.deepEqual(listed(shown({ assistants: ASSISTANTS })).map(([title]) => title), ["Assistants", "Models"]);
  assert.deepEqual(listed(shown({ assistants: ASSISTANTS }), "nin"), [["Assistants", "a1"]]);
});

test("a filter looks at names, titles and descriptions, whatever their case and marks", () => {
  assert.deepEqual(listed(shown(), "8b GLASS"), [["", "org/glass-8b"]]);
  assert.deepEqual(listed(shown(), "ecrit"), [["", "org/other"]]);
  assert.deepEqual(listed(shown(), "none"), []);
});

test("arrows walk round about, Home and End go to the ends", () => {
  assert.deepEqual([stepFrom("ArrowDown", 2, 3), stepFrom("ArrowUp", 0, 3), stepFrom("Home", 1, 3), stepFrom("End", 1, 3)], [0, 2, 0, 2]);
  assert.deepEqual([stepFrom("ArrowDown", -1, 3), stepFrom("ArrowUp", -1, 3)], [0, 2]);
  assert.equal(stepFrom("x", 0, 3), null);
  assert.equal(stepFrom("ArrowDown", -1, 0), null);
});

test("a letter goes to the next row that begins with it", () => {
  const texts = ["Vitrine", "Other", "vast"];
  assert.equal(stepTyped("v", 0, texts), 2);
  assert.equal(stepTyped("V", 2, texts), 0);
  assert.equal(stepTyped("x", 0, texts), null);
});
