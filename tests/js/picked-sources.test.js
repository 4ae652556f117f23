import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_PICKED, PickedSources } from "../../static/js/picked-sources.js";

const NOTES = { id: "k", name: "Notes" };
const FILE = { id: "d", name: "a.md" };
const NONE = { collections: [], documents: [] };

function picked() {
  const sources = new PickedSources();
  sources.open(null, NONE);
  return sources;
}

test("collections stay for the next message, documents are for one", () => {
  const sources = picked();
  sources.add("collections", NOTES);
  sources.add("documents", FILE);
  sources.add("documents", { ...FILE });
  assert.deepEqual(sources.take(), { collections: [NOTES], documents: [FILE] });
  assert.deepEqual(sources.take(), { collections: [NOTES], documents: [] });
  sources.remove(sources.collections[0]);
  assert.equal(sources.take(), null);
});

test("a file holds the message back until it is read, and for good when it cannot be", () => {
  const sources = picked();
  const file = sources.attach("a.pdf");
  assert.equal(sources.holds, "waiting");
  sources.change(file, { state: "reading", document: "d" });
  assert.equal(sources.holds, "waiting");
  sources.change(file, { state: "ready" });
  assert.equal(sources.holds, null);
  const broken = sources.attach("b.pdf");
  sources.change(broken, { state: "failed", problem: "It is no PDF." });
  assert.equal(sources.holds, "failed");
  sources.remove(broken);
  assert.equal(sources.has(broken), false);
  assert.deepEqual(sources.take(), { collections: [], documents: [{ id: "d", name: "a.pdf" }] });
});

test("each chat has its own, and a file goes on in the chat that was left", () => {
  const sources = picked();
  const file = sources.attach("a.pdf");
  sources.open("c1", { collections: [NOTES], documents: [] });
  assert.equal(sources.holds, null);
  assert.deepEqual(sources.collections, [NOTES]);
  sources.change(file, { state: "ready", document: "d" });
  sources.open(null, NONE);
  assert.equal(sources.attachments[0].state, "ready");
  sources.move("c2");
  sources.open("c2", NONE);
  assert.equal(sources.attachments.length, 1);
  sources.open(null, NONE);
  assert.equal(sources.size, 0);
});

test("Backspace takes the last one away", () => {
  const sources = picked();
  sources.add("collections", NOTES);
  sources.add("documents", FILE);
  assert.equal(sources.removeLast(), true);
  assert.deepEqual(sources.documents, []);
  assert.equal(sources.removeLast(), true);
  assert.equal(sources.removeLast(), false);
});

test("a message that comes back brings its sources, each once", () => {
  const sources = picked();
  sources.add("collections", NOTES);
  sources.takeBack({ collections: [NOTES], documents: [FILE] });
  assert.deepEqual(sources.take(), { collections: [NOTES], documents: [FILE] });
  sources.takeBack(undefined);
});

test("no more are picked than a message takes", () => {
  const sources = picked();
  for (let n = 0; n < MAX_PICKED; n += 1) assert.equal(sources.add("documents", { id: `${n}`, name: "" }), true);
  assert.equal(sources.add("documents", { id: "more", name: "" }), false);
  assert.equal(sources.attach("more"), null);
});

test("a temporary chat takes what is there already, and no files", () => {
  const sources = picked();
  sources.open("temporary", NONE, true);
  assert.equal(sources.takesNoFiles, true);
  sources.add("documents", FILE);
  assert.deepEqual(sources.take(), { collections: [], documents: [FILE] });
});

test("whoever shows it hears of each change", () => {
  const sources = picked();
  let heard = 0;
  sources.on("changed", () => (heard += 1));
  const file = sources.attach("a");
  sources.change(file, { progress: 0.5 });
  sources.remove(file);
  assert.equal(heard, 3);
});

test("what somebody picks is told, to be kept; what a chat brings along is not", () => {
  const sources = new PickedSources();
  /** @type {unknown[]} */
  const told = [];
  sources.on("picked", () => told.push(sources.ready));
  sources.open("c1", { collections: [NOTES], documents: [FILE] });
  assert.deepEqual(told, []);
  assert.deepEqual(sources.ready, { collections: [NOTES], documents: [FILE] });
  sources.remove(sources.collections[0]);
  const file = sources.attach("b.pdf");
  sources.change(file, { progress: 0.5 });
  sources.change(file, { state: "ready", document: "b" });
  assert.deepEqual(told.at(-1), { collections: [], documents: [FILE, { id: "b", name: "b.pdf" }] });
  assert.equal(told.length, 3);
  sources.open("c2", NONE);
  assert.equal(told.length, 3);
});

test("whatever is ready is told of its chat, and the page holds what is not", () => {
  const sources = picked();
  /** @type {Map<string | null, unknown>} */
  const told = new Map();
  sources.on("picked", (chat) => told.set(chat, sources.readyIn(chat)));
  const file = sources.attach("a.md");
  assert.equal(sources.wouldLose, true);
  sources.open("c1", NONE);
  sources.change(file, { state: "failed" });
  assert.equal(sources.wouldLose, true, "also in a chat that was left");
  sources.change(file, { state: "ready", document: FILE.id });
  assert.equal(sources.wouldLose, false);
  assert.deepEqual([...told], [[null, { collections: [], documents: [FILE] }]]);
});

test("a message that comes back to a chat that was left brings its sources there", () => {
  const sources = picked();
  sources.add("documents", FILE);
  const sent = sources.take();
  sources.add("collections", NOTES);
  sources.open("c1", NONE);
  /** @type {unknown[]} */
  const told = [];
  sources.on("picked", (chat) => told.push([chat, sources.readyIn(chat)]));
  sources.takeBack(sent, null);
  assert.equal(sources.size, 0);
  const both = { collections: [NOTES], documents: [FILE] };
  assert.deepEqual(told, [[null, both]]);
  sources.open(null, NONE);
  assert.deepEqual(sources.ready, both);
});

test("collections of an assistant make room for those of another, and others stay", () => {
  const sources = picked();
  const mine = { id: "m", name: "Mine" };
  const log = { id: "l", name: "Log" };
  sources.add("collections", mine);
  sources.swap([], [NOTES, log]);
  assert.deepEqual(sources.collections, [mine, NOTES, log]);
  sources.swap([NOTES, log], [log]);
  assert.deepEqual(sources.collections, [mine, log]);
  sources.swap([log], []);
  assert.deepEqual(sources.collections, [mine]);
});

test("what a chat was answered from last is picked once that is known, beside what its reader has picked", () => {
  const picked = new PickedSources();
  const last = { collections: [{ id: "k", name: "Notes" }], documents: [] };
  picked.open("c1", null);
  assert.equal(picked.size, 0);
  picked.open("c1", last);
  assert.deepEqual(picked.collections, last.collections);
  /** @type {unknown[]} */
  const told = [];
  picked.on("picked", () => told.push(picked.ready.collections));
  picked.open("c2", null);
  picked.attach("a.pdf");
  picked.add("collections", { id: "l", name: "Log" });
  picked.open("c1", null);
  picked.open("c2", null);
  assert.deepEqual(told, [], "it is half of it");
  picked.open("c2", last);
  assert.equal(picked.attachments.length, 1);
  assert.deepEqual(picked.collections.map(({ id }) => id), ["l", "k"]);
  assert.deepEqual(told.at(-1), picked.collections);
});

test("what its reader has taken away does not come back with the next opening", () => {
  const picked = new PickedSources();
  const last = { collections: [NOTES], documents: [] };
  picked.open("c1", null);
  picked.open("c1", last);
  picked.remove(picked.collections[0]);
  picked.open("c1", null);
  picked.open("c1", last);
  assert.equal(picked.size, 0);
});

test("a model that sees takes a picture as soon as the server has it, whatever was read in it", () => {
  const sources = picked();
  let sees = true;
  sources.sees = () => sees;
  const [picture, text] = [sources.attach("cat.jpg"), sources.attach("cat.txt")];
  assert.equal(sources.holds, "waiting");
  sources.change(picture, { state: "reading", document: "p" });
  assert.equal(sources.stateOf(picture), "ready");
  sources.change(text, { state: "reading", document: "t" });
  assert.equal(sources.holds, "waiting"); // for the other file
  sources.remove(text);
  assert.equal(sources.holds, null);
  sources.change(picture, { state: "failed", problem: "There is no text in it." });
  assert.equal(sources.holds, null);
  sees = false;
  assert.equal(sources.holds, "failed");
  sees = true;
  assert.deepEqual(sources.take(), { collections: [], documents: [{ id: "p", name: "cat.jpg" }] });
});

test("a picture that the server does not have holds back whoever sees", () => {
  const sources = picked();
  sources.sees = () => true;
  const picture = sources.attach("cat.jpg");
  assert.equal(sources.holds, "waiting");
  sources.change(picture, { state: "failed", problem: "It is too large." });
  assert.equal(sources.holds, "failed");
});
