import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Drafts, TEMPORARY } from "../../static/js/drafts.js";
import { forgetAll } from "../../static/js/preferences.js";
import { FakeStorage } from "./fakes.js";

beforeEach(() => {
  const value = new FakeStorage();
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true });
});

const EMPTY = { typed: "", sources: null, editing: {}, queued: [], sent: [] };
const kept = () => Object.keys(localStorage);

test("each account and each chat has a draft of its own", () => {
  const alice = new Drafts("1");
  alice.type(null, "for a new chat");
  alice.type("c1", "for this one");
  assert.equal(alice.of(null).typed, "for a new chat");
  assert.equal(new Drafts("1").of("c1").typed, "for this one");
  for (const chat of [null, "c1"]) {
    assert.deepEqual(new Drafts("2").of(chat), EMPTY);
  }
});

test("what is typed behind a sent message does not touch it", () => {
  const drafts = new Drafts("1");
  drafts.addSent(null, { text: "sent", clientId: "x" });
  drafts.type(null, "typed since");
  assert.deepEqual(drafts.of(null), {
    ...EMPTY, typed: "typed since", sent: [{ text: "sent", clientId: "x" }],
  });
  assert.equal(drafts.dropSent(null, "another"), null);
  assert.deepEqual(drafts.dropSent(null, "x"), { text: "sent", clientId: "x" });
  assert.deepEqual(drafts.of(null), { ...EMPTY, typed: "typed since" });
});

test("a page in which nobody typed leaves what another one writes", () => {
  const [tab, other] = [new Drafts("1"), new Drafts("1")];
  tab.type("c1", "begun");
  assert.equal(other.typedIn("c1"), "begun");
  tab.type("c1", "begun and gone on with");
  other.type("c1", "begun");
  assert.equal(tab.of("c1").typed, "begun and gone on with");
  tab.type("c1", "");
  other.type("c1", "begun");
  assert.equal(tab.of("c1").typed, "", "it is sent");
  other.type("c1", "typed here");
  assert.equal(tab.of("c1").typed, "typed here");
});

test("what stands in the box is stored again after signing in again", () => {
  const drafts = new Drafts("1");
  drafts.type("c1", "half a sentence");
  drafts.close();
  drafts.type("c1", "half a sentence");
  assert.deepEqual(kept(), []);
  drafts.open();
  assert.equal(new Drafts("1").of("c1").typed, "half a sentence");
});

test("what the browser does not store waits in the page, in its order, and is stored once it can be", () => {
  const full = () => {
    throw new Error("QuotaExceededError");
  };
  const queued = ["x", "y", "z"].map((clientId) => ({ text: clientId, clientId }));
  const ways = [
    { shut: (drafts) => drafts.close(), open: (drafts) => drafts.open() },
    { shut: () => Object.defineProperty(localStorage, "setItem", { value: full, configurable: true }), open: () => delete localStorage.setItem },
  ];
  for (const { shut, open } of ways) {
    const drafts = new Drafts("1");
    shut(drafts);
    for (const message of queued) drafts.addQueued("c1", message);
    drafts.moveQueued("c1", "c2");
    assert.deepEqual(kept(), []);
    assert.deepEqual(drafts.of("c1"), EMPTY);
    assert.deepEqual(drafts.of("c2").queued, queued);
    assert.equal(drafts.takeQueued("c2").clientId, "x");
    open(drafts);
    drafts.dropSent("c2", "x");
    assert.deepEqual(new Drafts("1").of("c2"), { ...EMPTY, queued: queued.slice(1) });
    for (const { clientId } of queued) drafts.dropQueued("c2", clientId);
    assert.deepEqual(kept(), []);
  }
});

test("what is empty is not kept", () => {
  const drafts = new Drafts("1");
  drafts.type(null, "x");
  drafts.type(null, " \n");
  drafts.addSent("c1", { text: "sent", clientId: "x" });
  drafts.dropSent("c1", "x");
  drafts.type("c2", "a chat that is deleted");
  drafts.forget("c2");
  assert.deepEqual(kept(), []);
});

test("an account that has signed out leaves nothing and stores nothing more", () => {
  const drafts = new Drafts("1");
  const other = new Drafts("11");
  drafts.type(null, "mine");
  other.type(null, "another account's");
  drafts.close();
  drafts.type(null, "too late");
  drafts.addSent("c1", { text: "too late", clientId: "x" });
  drafts.type("c2", "begun");
  drafts.type("c2", "");
  assert.deepEqual(kept(), ["vitrine.draft.11.new"]);
  drafts.open(); // signed in again
  assert.deepEqual(kept().sort(), ["vitrine.draft.1.c1", "vitrine.draft.1.new", "vitrine.draft.11.new"]);
});

test("all drafts can be forgotten, and only they", () => {
  localStorage.setItem("vitrine.theme", "dark");
  localStorage.setItem("vitrine.draft.new", "from before accounts had drafts of their own");
  new Drafts("1").type("c1", "mine");
  forgetAll("draft.");
  assert.deepEqual(kept(), ["vitrine.theme"]);
});

test("without storage nothing outlives the page and nothing breaks", () => {
  Object.defineProperty(globalThis, "localStorage", {
    get() {
      throw new Error("forbidden");
    },
    configurable: true,
  });
  const drafts = new Drafts("1");
  drafts.type(null, "x");
  assert.equal(drafts.of(null).typed, "x");
  drafts.close();
  assert.deepEqual(new Drafts("1").of(null), EMPTY);
});

test("messages wait in their order, and one at a time is taken, by one tab only", () => {
  const [tab, other] = [new Drafts("1"), new Drafts("1")];
  for (const clientId of ["x", "y", "z"]) tab.addQueued("c1", { text: clientId, clientId });
  assert.equal(other.takeQueued("c1").clientId, "x");
  assert.equal(tab.takeQueued("c1"), null, "the other one has not been accepted");
  other.dropSent("c1", "x");
  assert.equal(tab.dropQueued("c1", "y").text, "y");
  assert.equal(tab.dropQueued("c1", "y"), null);
  assert.equal(tab.takeQueued("c1").clientId, "z");
  tab.dropSent("c1", "z");
  assert.equal(other.takeQueued("c1"), null);
});

test("what waits in a new chat goes along to its address", () => {
  const drafts = new Drafts("1");
  drafts.addQueued(null, { text: "next", clientId: "x" });
  drafts.moveQueued(null, "c1");
  assert.deepEqual(drafts.of(null), EMPTY);
  assert.equal(drafts.of("c1").queued.length, 1);
});

test("a chat that comes back has its draft again, and no trace is kept meanwhile", () => {
  const drafts = new Drafts("1");
  drafts.type("c1", "half a thought");
  drafts.addQueued("c1", { text: "next", clientId: "x" });
  const before = drafts.of("c1");
  drafts.forget("c1");
  drafts.forget("c1"); // it is told more than once
  assert.deepEqual(kept(), []);
  assert.deepEqual(drafts.of("c1"), EMPTY);
  drafts.restore("c1");
  assert.deepEqual(drafts.of("c1"), before);
  drafts.type("c1", "");
  drafts.restore("c1");
  assert.equal(drafts.of("c1").typed, "", "once");
  drafts.forget("c1");
  drafts.close();
  drafts.open();
  drafts.restore("c1");
  assert.deepEqual(kept(), [], "not for whoever comes after");
});

test("of a temporary chat nothing is stored", () => {
  const drafts = new Drafts("1");
  drafts.type(TEMPORARY, "a secret");
  drafts.addQueued(TEMPORARY, { text: "another", clientId: "x" });
  drafts.addSent(TEMPORARY, { text: "a third", clientId: "y" });
  assert.equal(drafts.of(TEMPORARY).typed, "a secret");
  assert.deepEqual(kept(), []);
  drafts.forget(TEMPORARY);
  assert.deepEqual(drafts.of(TEMPORARY), EMPTY);
});

test("what is written in the place of messages is kept beside what is typed, until it is saved or left", () => {
  const drafts = new Drafts("1");
  drafts.type("c1", "below");
  drafts.edit("c1", "m1", "another question");
  drafts.edit("c1", "m2", "another answer");
  const again = new Drafts("1"); // after a reload
  assert.deepEqual(again.of("c1").editing, { m1: "another question", m2: "another answer" });
  assert.deepEqual(again.of("c2").editing, {});
  again.edit("c1", "m1", null);
  again.type("c1", "");
  assert.deepEqual(again.of("c1"), { ...EMPTY, editing: { m2: "another answer" } });
  again.edit("c1", "m2", null);
  again.edit("c1", "m3", null); // nothing was written there
  assert.deepEqual(kept(), []);
  again.edit(TEMPORARY, "m1", "a secret");
  assert.equal(again.of(TEMPORARY).editing.m1, "a secret");
  assert.deepEqual(kept(), []);
});

test("what was picked is kept beside what is typed, also alone", () => {
  const sources = { collections: [{ id: "k", name: "Notes" }], documents: [] };
  new Drafts("1").pick("c1", sources);
  const drafts = new Drafts("1");
  assert.deepEqual(drafts.of("c1"), { ...EMPTY, sources });
  drafts.type("c1", "When?");
  drafts.pick("c1", null);
  assert.deepEqual(drafts.of("c1"), { ...EMPTY, typed: "When?" });
  drafts.type("c1", "");
  assert.deepEqual(kept(), []);
});
