import assert from "node:assert/strict";
import { test } from "node:test";

import { stateWords } from "../../static/js/passage-search.js";

const hit = (rank) => ({ lexical_rank: rank });

test("passages that have none of the words are said to be near in meaning", () => {
  assert.equal(stateWords([hit(null), hit(null)]), "Nothing has these words. Closest in meaning:");
  assert.equal(stateWords([hit(null), hit(1)]), "2 passages found");
  assert.equal(stateWords([]), "No passage says this.");
});
