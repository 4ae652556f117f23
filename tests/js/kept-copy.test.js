import assert from "node:assert/strict";
import { test } from "node:test";

import { ConversationStore } from "../../static/js/conversation-store.js";
import { copyOf } from "../../static/js/kept-copy.js";

const CHAT = { id: "c1", url: "/c/c1", title: "Trip", model: "m", version: 3, running: [] };
const message = (id, parent, role, more = {}) =>
  ({ id, parent, role, status: "complete", text: id, parts: [], run: null, chosen: 1, created_at: "2026-11-25T10:00:00Z", ...more });

function store(messages, conversation = CHAT) {
  return new ConversationStore(conversation, messages);
}

test("what is kept makes the same chat again, with all its branches", () => {
  const first = store([
    message("q", null, "user"), message("a", "q", "assistant"),
    message("b", "q", "assistant", { chosen: 2 }), message("r", "b", "user"),
  ]);
  const kept = JSON.parse(JSON.stringify(copyOf(first)));
  const again = store(kept.messages, kept.conversation);
  assert.deepEqual(again.path(), first.path());
  assert.deepEqual([...again.messages.keys()], [...first.messages.keys()]);
  assert.deepEqual(copyOf(again), kept);
});

test("what only this page knows is not kept", () => {
  const one = store([message("q", null, "user"), message("a", "q", "assistant")]);
  one.messages.set("a", { ...one.messages.get("a"), key: "sent:k0" });
  assert.ok(copyOf(one).messages.every((each) => !("key" in each)));
  one.addSent({ text: "And?", model: null, clientId: "k1" });
  assert.equal(one.path().length, 4);
  assert.equal(copyOf(one), null); // until the server has it
});

test("a chat that has no place, is unfinished or temporary is not kept", () => {
  assert.equal(copyOf(store([], null)), null);
  const temporary = store([message("q", null, "user")]);
  temporary.isTemporary = true;
  assert.equal(copyOf(temporary), null);
  const busy = store([message("q", null, "user"), message("a", "q", "assistant", { status: "running", run: "r1" })]);
  assert.equal(busy.isBusy, true);
  assert.equal(copyOf(busy), null);
});
