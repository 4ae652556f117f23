import assert from "node:assert/strict";
import { test } from "node:test";

import { citedIn, piecesOf, withoutHalfCitation } from "../../static/js/citations.js";

test("numbers in brackets are found in text, alone, in a row and together", () => {
  assert.deepEqual(piecesOf("At 8 [1]."), ["At 8 ", [1], "."]);
  assert.deepEqual(piecesOf("[1][12]"), [[1], [12]]);
  assert.deepEqual(piecesOf("so [1, 2;3 ]"), ["so ", [1, 2, 3]]);
  for (const text of ["", "[a]", "[1234]", "[]", "[1", "1]", "[1.2]", "[-1]", "(1)"]) {
    assert.deepEqual(piecesOf(text), text ? [text] : [], text);
  }
});

test("no character is lost between the pieces", () => {
  const text = "a [1] b [x] [2,3] 🏴 [4";
  const back = piecesOf(text).map((piece) => (typeof piece === "string" ? piece : `[${piece}]`));
  assert.equal(back.join(""), text);
});

test("an answer cites each number once, and none in code", () => {
  assert.deepEqual(citedIn("First [2], then [1] and [2]."), [2, 1]);
  assert.deepEqual(citedIn("See `a[3]` and\n```js\nb[4]\n```\nthen [5]"), [5]);
  assert.deepEqual(citedIn("```\nopen [6]"), []);
  assert.deepEqual(citedIn("nothing"), []);
});

test("a number that is half written waits for its end", () => {
  for (const half of ["[", "[1", "[12", "[1,", "[1, ", "[1, 2"]) {
    assert.equal(withoutHalfCitation(`At 8 ${half}`), "At 8 ");
  }
  for (const whole of ["At 8 [1]", "At 8 [x", "At 8 [1]("]) assert.equal(withoutHalfCitation(whole), whole);
});
