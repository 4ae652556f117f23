import assert from "node:assert/strict";
import { test } from "node:test";

import { ConversationStore } from "../../static/js/conversation-store.js";
import { textOf } from "../../static/js/parts.js";
import { conversation, message } from "./fakes.js";

const texts = (store) => store.path().map((shown) => textOf(shown.parts));
const delta = (text, offset) => ({ kind: "delta", part: "text", offset, text });

const running = (run) => ({ status: "running", run, parts: [] });

function accepted(clientId, more = {}) {
  return {
    client_id: clientId,
    conversation: conversation("c1", { version: 2 }),
    message: message("u1", null, "user", "hi", { chosen: 2 }),
    answer: message("a1", "u1", "assistant", "", { ...running("r1"), chosen: 2 }),
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
  store.merge([
    message("u1", null, "user", "hi", { chosen: 2 }),
    message("a1", "u1", "assistant", "wh", { status: "running", run: "r1", chosen: 2 }),
  ]);
  assert.deepEqual(texts(store), ["hi", "whole"]);
});

test("a run that ended unseen is replaced by the saved message", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "hi"),
    message("a1", "u1", "assistant", "par", { status: "running", run: "r1" }),
  ]);
  assert.equal(store.isBusy, true);
  store.merge([message("u1", null, "user", "hi"), message("a1", "u1", "assistant", "part and rest")]);
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
  store.accept(accepted("x", { message: message("u1", "a0", "user", "hi", { chosen: 2 }) }));
  store.merge(before, 1);
  assert.deepEqual(texts(store), ["one", "1", "hi", ""]);
  assert.equal(store.isBusy, true);
});

test("a new branch that was just accepted is not left for the old one", () => {
  const before = [message("u0", null, "user", "hi"), message("a0", "u0", "assistant", "no")];
  const store = new ConversationStore(conversation("c1"), before);
  store.addSent({ clientId: "x", text: "hi", model: null, parent: null });
  store.accept(accepted("x"));
  store.merge(before, 1);
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

// --- the tree ---------------------------------------------------------------------------------

/** Two exchanges, the first answer in two versions. */
function forked() {
  return new ConversationStore(conversation("c1", { version: 5 }), [
    message("u1", null, "user", "one", { chosen: 1 }),
    message("a1", "u1", "assistant", "first", { chosen: 1 }),
    message("u2", "a1", "user", "two", { chosen: 2 }),
    message("a2", "u2", "assistant", "more", { chosen: 2 }),
    message("b1", "u1", "assistant", "second", { chosen: 3 }),
  ]);
}

test("the branch that was chosen last is shown, and its own replies with it", () => {
  const store = forked();
  assert.deepEqual(texts(store), ["one", "second"]);
  store.choose("a1");
  assert.deepEqual(texts(store), ["one", "first", "two", "more"]);
  assert.deepEqual(store.siblings("a1").map(({ id }) => id), ["a1", "b1"]);
});

test("a read from before a choice does not take it back, one from after it does", () => {
  const store = forked();
  store.choose("a1");
  const read = [...forked().messages.values()];
  store.merge(read, 5);
  assert.equal(texts(store)[1], "first");
  store.merge(read, 6);
  assert.equal(texts(store)[1], "second");
});

test("an answer is written anew beside the first, and on from it where it goes on", () => {
  const store = forked();
  const frame = store.addRetake({ clientId: "x", answer: "b1", model: "tiny", wish: "shorter" });
  assert.deepEqual(frame, {
    type: "answer.regenerate", client_id: "x", answer: "b1", model: "tiny", wish: "shorter",
  });
  assert.deepEqual(texts(store), ["one", ""]);
  assert.equal(store.reject("x"), null);
  assert.deepEqual(texts(store), ["one", "second"]);
  store.addRetake({ clientId: "y", answer: "b1", goesOn: true });
  assert.deepEqual(texts(store), ["one", "second"]);
  assert.equal(store.siblings("b1").length, 3);
});

test("several models answer side by side until one is chosen", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: "one", beside: ["two"] });
  const [first, second] = store.beside(store.leaf);
  assert.deepEqual([first.model, second.model], ["one", "two"]);
  const answers = ["a1", "a2"].map((id, index) =>
    message(id, "u1", "assistant", "", { ...running(`r${index + 1}`), chosen: 2 }));
  store.accept(accepted("x", { answer: answers[0], answers }));
  assert.deepEqual(store.shownRuns.map(({ run }) => run), ["r1", "r2"]);
  assert.deepEqual(store.beside("a1").map(({ key }) => key), [first.key, second.key]);
  store.choose("a2");
  assert.deepEqual(store.beside("a2"), []);
  assert.equal(store.leaf, "a2");
});

test("who writes below one of several has chosen it", () => {
  const tied = ["a1", "a2"].map((id) => message(id, "u1", "assistant", id, { chosen: 1 }));
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "hi", { chosen: 1 }), ...tied,
  ]);
  assert.equal(store.leaf, "a1");
  store.addSent({ clientId: "x", text: "go on", model: null, parent: "a2" });
  assert.deepEqual(texts(store), ["hi", "a2", "go on", ""]);
});

test("what is deleted elsewhere goes, what was sent meanwhile stays", () => {
  const store = forked();
  store.addSent({ clientId: "x", text: "three", model: null });
  store.merge([...store.messages.values()].filter(({ id }) => id === "u1" || id === "b1"), 9);
  assert.deepEqual(texts(store), ["one", "second", "three", ""]);
  assert.equal(store.messages.has("a2"), false);
});

test("what somebody is editing stays on the page when another tab chooses", () => {
  const store = forked();
  store.hold("b1");
  store.choose("a1");
  assert.deepEqual(texts(store), ["one", "second"]);
  store.hold(null);
  assert.equal(texts(store)[1], "first");
});

test("of answers that nobody ever chose, as in chats from elsewhere, the last one is shown", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "one"),
    message("a1", "u1", "assistant", "first"),
    message("a2", "u1", "assistant", "second"),
  ]);
  assert.deepEqual(texts(store), ["one", "second"]);
  assert.deepEqual(store.beside("a2"), []);
});

test("children are derived: for any tree the path follows the highest choice", () => {
  let seed = 7;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  for (let round = 0; round < 200; round++) {
    const made = [];
    for (let n = 0; n < 1 + random(12); n++) {
      const above = random(made.length + 1) - 1;
      const parent = above < 0 ? null : made[above];
      const role = parent?.role === "user" ? "assistant" : "user";
      made.push(message(`m${n}`, parent?.id ?? null, role, "", { chosen: random(5) }));
    }
    const store = new ConversationStore(conversation("c1"), made);
    const path = store.path();
    path.forEach((shown, index) => {
      assert.equal(shown.parent, path[index - 1]?.id ?? null);
      for (const other of store.siblings(shown.id)) assert.ok(other.chosen <= shown.chosen);
    });
    assert.equal(store.hasReplies(path.at(-1).id), false);
    const target = made[random(made.length)];
    store.choose(target.id);
    assert.ok(store.path().some(({ id }) => id === target.id));
  }
});

const SOURCES = { collections: [{ id: "k", name: "Notes" }], documents: [{ id: "d", name: "a.md" }] };
const excerpt = (number) => ({ number, document: "d", version: "v", name: "a.md", start: 0, end: 9 });
const found = (...numbers) => ({ kind: "found", query: "q", excerpts: numbers.map(excerpt), is_whole: false });

test("a question keeps the names of its sources and sends their ids", () => {
  const store = new ConversationStore(null);
  const frame = store.addSent({ clientId: "x", text: "hi", model: null, sources: SOURCES });
  assert.deepEqual(frame.sources, { collections: ["k"], documents: ["d"] });
  assert.deepEqual(store.path()[0].sources, SOURCES);
  const plain = new ConversationStore(null).addSent({ clientId: "y", text: "hi", model: null });
  assert.equal("sources" in plain, false);
});

test("what was found is known from its event on, and stays when the answer has ended", () => {
  const store = new ConversationStore(null);
  store.addSent({ clientId: "x", text: "hi", model: null });
  store.accept(accepted("x"));
  assert.equal(store.citing("a1").isChecked, false);
  store.apply("r1", 1, found(1, 2));
  assert.deepEqual([...store.citing("a1").numbers.keys()], [1, 2]);
  store.apply("r1", 2, delta("At 8 [1].", 0));
  store.apply("r1", 3, { kind: "finished", reason: "stop" });
  const [, answer] = store.path();
  assert.deepEqual(answer.found.excerpts.map(({ number }) => number), [1, 2]);
  assert.equal(store.citing("a1").isChecked, true);
});

test("an answer cites what was found on its own branch alone", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "a"), message("a1", "u1", "assistant", "b", { found: found(1) }),
    message("a2", "u1", "assistant", "b", { found: found(1, 2) }),
    message("u2", "a1", "user", "c"), message("a3", "u2", "assistant", "d"),
  ]);
  const { numbers, isChecked } = store.citing("a3");
  assert.deepEqual([...numbers].map(([number, { answer }]) => [number, answer]), [[1, "a1"]]);
  assert.equal(isChecked, false);
});

test("an answer is asked for again without passages", () => {
  const store = new ConversationStore(conversation("c1"), [
    message("u1", null, "user", "a"), message("a1", "u1", "assistant", "b", { found: found(1) }),
  ]);
  assert.deepEqual(store.addRetake({ clientId: "x", answer: "a1", without: [7] }).without, [7]);
  assert.equal("without" in store.addRetake({ clientId: "y", answer: "a1" }), false);
});
