import assert from "node:assert/strict";
import { test } from "node:test";

import { ConversationStore } from "../../static/js/conversation-store.js";
import { textOf } from "../../static/js/parts.js";
import { conversation, message } from "./fakes.js";

const texts = (store) => store.path().map((shown) => textOf(shown.parts));
const delta = (text, offset) => ({ kind: "delta", part: "text", offset, text });

function accepted(clientId, more = {}) {
  return {
    client_id: clientId,
    conversation: conversation("c1"),
    message: message("u1", null, "user", "hi"),
    answer: message("a1", "u1", "assistant", "", { status: "running", run: "r1", parts: [] }),
    run: "r1",
    ...more,
  };
}

test("a sent message and an empty answer are shown at once", () => {
  const store = new ConversationStore(null);
  const frame = store.addSent({ clientId: "x", text: "hi", model: "tiny" });
  assert.deepEqual(texts(store), ["hi", ""]);
  assert.deepEqual(frame, {
    type: "message.send", client_id: "x", conversation: null, parent: null, text: "hi", model: "tiny",
  });
  assert.equal(store.isBusy, true);
});

test("acceptance gives ids and keeps what is on the screen where it is", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  const keys = store.path().map((shown) => shown.key);
  assert.equal(store.accept(accepted("x")), true);
  assert.deepEqual(store.path().map((shown) => shown.id), ["u1", "a1"]);
  assert.deepEqual(store.path().map((shown) => shown.key), keys);
  assert.equal(store.conversation.id, "c1");
  assert.equal(store.liveRun.run, "r1");
});

test("a second acceptance of the same message changes nothing", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x"));
  assert.equal(store.accept(accepted("x")), false);
  assert.equal(store.path().length, 2);
});

test("an answer that ended before it was accepted is final", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x", { answer: message("a1", "u1", "assistant", "done", { run: null }) }));
  assert.equal(store.isBusy, false);
  assert.deepEqual(texts(store), ["hi", "done"]);
});

test("a rejected message leaves nothing behind and gives its text back", () => {
  const store = new ConversationStore(conversation("c1"), [message("u0", null, "user", "before")]);
  store.addSent({ clientId: "x", text: "hi", model: null });
  assert.equal(store.reject("x"), "hi");
  assert.deepEqual(texts(store), ["before"]);
  assert.equal(store.unaccepted.length, 0);
});

test("what was sent without an answer is sent again, as it was", () => {
  const store = new ConversationStore(null);
  const frame = store.addSent({ clientId: "x", text: "hi", model: null });
  assert.deepEqual(store.unaccepted, [frame]);
  store.accept(accepted("x"));
  assert.deepEqual(store.unaccepted, []);
});

test("after a reload the text never shrinks and never doubles", () => {
  const partial = message("a1", "u1", "assistant", "Hello wor", { status: "running", run: "r1" });
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "hi"), partial,
  ]);
  store.apply("r1", 1, delta("Hello ", 0));
  assert.deepEqual(texts(store), ["hi", "Hello wor"]);
  store.apply("r1", 2, delta("world", 6));
  store.apply("r1", 3, delta(" again", 11));
  assert.deepEqual(texts(store), ["hi", "Hello world again"]);
});

test("stop freezes the screen although events still come", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x"));
  store.apply("r1", 1, delta("one two three", 0));
  assert.equal(store.stop("r1", 7), 7);
  store.apply("r1", 2, delta(" four", 13));
  assert.equal(texts(store)[1], "one two");
  store.apply("r1", 3, { kind: "stopped", chars: 7, usage: null, timings: null });
  assert.equal(texts(store)[1], "one two");
  assert.equal(store.path()[1].status, "stopped");
  assert.equal(store.isBusy, false);
});

test("an old read does not bring an unfinished answer back", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x"));
  store.apply("r1", 1, delta("whole", 0));
  store.apply("r1", 2, { kind: "finished", reason: "stop" });
  store.merge([message("a1", "u1", "assistant", "wh", { status: "running", run: "r1" })]);
  assert.deepEqual(texts(store), ["hi", "whole"]);
});

test("a run that ended unseen is replaced by the saved message", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "hi"),
    message("a1", "u1", "assistant", "par", { status: "running", run: "r1" }),
  ]);
  assert.equal(store.isBusy, true);
  store.merge([message("a1", "u1", "assistant", "part and rest")]);
  assert.equal(store.isBusy, false);
  assert.deepEqual(texts(store), ["hi", "part and rest"]);
});

test("what another tab sent ends the path here too", () => {
  const first = [message("u1", null, "user", "one"), message("a1", "u1", "assistant", "1")];
  const store = new ConversationStore(conversation("c1"), first);
  store.merge([...first, message("u2", "a1", "user", "two"),
    message("a2", "u2", "assistant", "", { status: "running", run: "r2", parts: [] })]);
  assert.deepEqual(texts(store), ["one", "1", "two", ""]);
  assert.equal(store.liveRun.run, "r2");
});

test("of several branches the newest is shown", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "first try"),
    message("a1", "u1", "assistant", "no"),
    message("u2", null, "user", "second try"),
    message("a2", "u2", "assistant", "yes"),
  ]);
  assert.deepEqual(texts(store), ["second try", "yes"]);
});

test("a read that began before a message was accepted does not hide it", () => {
  const before = [message("u0", null, "user", "one"), message("a0", "u0", "assistant", "1")];
  const store = new ConversationStore(conversation("c1"), before);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x", { message: message("u1", "a0", "user", "hi") }));
  store.merge(before);
  assert.deepEqual(texts(store), ["one", "1", "hi", ""]);
  assert.equal(store.isBusy, true);
});

test("a new branch that was just accepted is not left for the old one", () => {
  const before = [message("u0", null, "user", "hi"), message("a0", "u0", "assistant", "no")];
  const store = new ConversationStore(conversation("c1"), before);
  store.addSent({ clientId: "x", text: "hi", model: null, parent: null });
  store.accept(accepted("x"));
  store.merge(before);
  assert.deepEqual(store.path().map((shown) => shown.id), ["u1", "a1"]);
});

test("a run that ended unseen leaves no phase and no stop behind", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "hi"),
    message("a1", "u1", "assistant", "par", { status: "running", run: "r1" }),
  ]);
  store.phases.set("r1", { phase: "decode" });
  store.stop("r1", 2);
  store.merge([message("u1", null, "user", "hi"), message("a1", "u1", "assistant", "pa")]);
  assert.equal(store.phases.size + store.stopping.size + store.runs.size, 0);
});

test("a run that the server does not know fails, with what was seen of it", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "hi"),
    message("a1", "u1", "assistant", "Hello wor", { status: "running", run: "r1" }),
  ]);
  store.apply("r1", 1, delta("Hello ", 0));
  assert.equal(store.fail("r1", { code: "not_found", message: "There is no such run." }), "a1");
  assert.equal(store.isBusy, false);
  assert.deepEqual(texts(store), ["hi", "Hello wor"]);
  assert.equal(store.path()[1].status, "failed");
  assert.equal(store.fail("r1", { code: "not_found", message: "" }), null);
});

test("after a reset, stop counts what has come again", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x"));
  store.apply("r1", 1, delta("a long text that the server lost", 0));
  assert.equal(store.restart("r1"), "a1");
  assert.deepEqual(texts(store), ["hi", ""]);
  store.apply("r1", 1, delta("short 👩‍🚀", 0));
  assert.equal(store.stop("r1", 32), 9);
  assert.equal(texts(store)[1], "short 👩‍🚀");
});
