import assert from "node:assert/strict";
import { test } from "node:test";

import { together } from "../../static/js/export-chosen.js";

test("the files of chats become one that holds them all, in their order", () => {
  const file = (...chats) => ({ schema: "vitrine.chats", version: 1, chats });
  assert.deepEqual(together([file({ id: "a" }), file({ id: "b" })]), file({ id: "a" }, { id: "b" }));
});
