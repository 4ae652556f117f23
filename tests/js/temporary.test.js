import assert from "node:assert/strict";
import { test } from "node:test";

import { ConversationStore } from "../../static/js/conversation-store.js";
import { textOf } from "../../static/js/parts.js";
import { acceptedHere, temporaryFrame } from "../../static/js/temporary.js";
import { everything } from "../../static/js/temporary-keeping.js";
import { TemporaryTree } from "../../static/js/temporary-tree.js";

const delta = (text, offset) => ({ kind: "delta", part: "text", offset, text });
const texts = (messages) => messages.map(({ parts }) => textOf(parts));

/** A temporary chat with one answered question. */
function answered() {
  const store = new ConversationStore(null);
  store.isTemporary = true;
  const frame = store.addSent({ clientId: "x", text: "hi", model: "tiny" });
  store.accept(acceptedHere(store, { client_id: "x", run: "r1" }));
  store.apply("r1", 1, delta("Hello", 0));
  store.apply("r1", 2, { kind: "finished", reason: "stop" });
  return { store, frame };
}

test("each question brings the branch along", () => {
  const { store } = answered();
  const frame = store.addSent({ clientId: "y", text: "more", model: "tiny" });
  const sent = temporaryFrame(store, frame);
  assert.equal(sent.type, "temporary.send");
  assert.deepEqual(texts(sent.messages), ["hi", "Hello", "more"]);
  assert.deepEqual(sent.messages.map(({ status }) => status), ["complete", "complete", "complete"]);
  assert.equal(sent.conversation, undefined);
});

test("what a question is answered from, and what was found for it, come along", () => {
  const store = new ConversationStore(null);
  store.isTemporary = true;
  const sources = { collections: [{ id: "c", name: "Notes" }], documents: [] };
  store.addSent({ clientId: "x", text: "hi", model: "tiny", sources });
  store.accept(acceptedHere(store, { client_id: "x", run: "r1" }));
  const found = { query: "hi", excerpts: [{ number: 1 }], is_whole: false, num_waiting: 0, num_failed: 0 };
  store.apply("r1", 1, { kind: "found", ...found });
  store.apply("r1", 2, delta("Hello [1]", 0));
  store.apply("r1", 3, { kind: "finished", reason: "stop" });
  const { messages } = temporaryFrame(store, store.addSent({ clientId: "y", text: "more", model: "tiny" }));
  assert.deepEqual(messages.map((message) => message.sources), [sources, null, null]);
  assert.deepEqual(messages.map((message) => message.found), [null, found, null]);
  assert.deepEqual(everything(store).map((message) => message.found)[1], found);
});

test("another answer is asked for by the question, one like the last by both", () => {
  const { store } = answered();
  const again = store.addRetake({ clientId: "y", answer: "r1" });
  assert.deepEqual(texts(temporaryFrame(store, again).messages), ["hi"]);
  store.reject("y");
  const shorter = store.addRetake({ clientId: "z", answer: "r1", wish: "shorter" });
  assert.deepEqual(texts(temporaryFrame(store, shorter).messages), ["hi", "Hello"]);
  store.accept(acceptedHere(store, { client_id: "z", run: "r2" }));
  assert.equal(store.siblings("r2").length, 2);
  assert.equal(store.leaf, "r2");
});

test("an edited answer is a sibling, a deletion is undone", () => {
  const { store } = answered();
  const tree = new TemporaryTree(() => store);
  store.mergeOne(tree.editAnswer("r1", "Mine", "e").message);
  assert.deepEqual(texts(store.path()), ["hi", "Mine"]);
  const question = store.path()[0].id;
  tree.deleteMessage(question, { deletion: "d", replies: true });
  assert.equal(store.path().length, 0);
  tree.restore(null, "d");
  assert.deepEqual(texts(store.path()), ["hi", "Mine"]);
  tree.deleteMessage(question, { deletion: "e", replies: false });
  assert.equal(store.path()[0].status, "deleted");
  const kept = everything(store);
  assert.deepEqual(kept.map(({ parent }) => parent), ["", ""], "nothing is kept of what is deleted");
});

test("what is kept is the whole tree", () => {
  const { store } = answered();
  store.addSent({ clientId: "y", text: "edited", model: "tiny", parent: null });
  store.accept(acceptedHere(store, { client_id: "y", run: "r2" }));
  store.apply("r2", 1, { kind: "finished", reason: "stop" });
  const kept = everything(store);
  assert.deepEqual(kept.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assert.deepEqual(kept.map(({ parent }) => parent), ["", kept[0].id, "", kept[2].id]);
});
