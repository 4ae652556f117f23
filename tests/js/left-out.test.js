// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { leftOutOf } from "../../static/js/left-out.js";

test("a line tells what is left out, for its length or by a policy", () => {
  const told = (left_out) => leftOutOf([{ role: "user" }, { role: "assistant", left_out }]);
  const nothing = { before: "m1", num_messages: 0, summary: null };
  assert.equal(told(null), null);
  assert.equal(told(nothing), null);
  assert.equal(told({ ...nothing, stopped: [] }), null);
  const stopped = { ...nothing, stopped: ["m1"] };
  assert.equal(told(stopped), stopped);
  const long = { ...nothing, num_messages: 2 };
  assert.equal(told(long), long);
});
