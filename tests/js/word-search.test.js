import assert from "node:assert/strict";
import { test } from "node:test";

import { matches } from "../../static/js/word-search.js";

test("all words are to be there, in any order and anywhere in a word", () => {
  const texts = ["Appearance light dark theme", "API keys programs", "Keyboard shortcuts"];
  assert.deepEqual(matches("dark app", texts), [true, false, false]);
  assert.deepEqual(matches("KEY", texts), [false, true, true]);
  assert.deepEqual(matches("key short", texts), [false, false, true]);
  assert.deepEqual(matches("monkey", texts), [false, false, false]);
});

test("marks and size of letters do not matter", () => {
  assert.deepEqual(matches("schlussel", ["API-Schlüssel"]), [true]);
  assert.deepEqual(matches("Schlüssel", ["SCHLUSSEL"]), [true]);
  assert.deepEqual(matches("إيميل", ["ايميل"]), [true]);
});

test("nothing is found by nothing", () => {
  assert.deepEqual(matches("", ["Appearance"]), [false]);
  assert.deepEqual(matches("  \t", ["Appearance"]), [false]);
});
