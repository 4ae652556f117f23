import assert from "node:assert/strict";
import { test } from "node:test";

import { pastedName } from "../../static/js/pasted.js";

test("a pasted text is named by its first line", () => {
  assert.equal(pastedName("\n\n  Minutes of May 4 \nmore", "Pasted text"), "Minutes of May 4.txt");
  assert.equal(pastedName("## a/b:c*?\u0007\n", "Pasted text"), "a b c.txt");
  assert.equal(pastedName(" \n\t", "Pasted text"), "Pasted text.txt");
  assert.equal([...pastedName("😀".repeat(100), "x")].length, 48 + 4);
});
