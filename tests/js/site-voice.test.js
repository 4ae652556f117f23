import assert from "node:assert/strict";
import { test } from "node:test";

import { joined } from "../../static/js/site-voice.js";

test("the first sentence goes alone, and others together as long as they are short", () => {
  assert.deepEqual(joined([]), []);
  assert.deepEqual(joined(["One.", "Two.", "Three."]), ["One.", "Two. Three."]);
  const long = "x".repeat(200);
  assert.deepEqual(joined(["One.", long, long, "End."]), ["One.", long, `${long} End.`]);
});
