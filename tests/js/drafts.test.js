import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Drafts } from "../../static/js/drafts.js";
import { forgetAll } from "../../static/js/preferences.js";
import { FakeStorage } from "./fakes.js";

beforeEach(() => {
  const value = new FakeStorage();
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true });
});

const kept = () => Object.keys(localStorage);

test("each account and each chat has a draft of its own", () => {
  const alice = new Drafts("1");
  alice.type(null, "for a new chat");
  alice.type("c1", "for this one");
  assert.equal(alice.of(null).typed, "for a new chat");
  assert.equal(new Drafts("1").of("c1").typed, "for this one");
  for (const chat of [null, "c1"]) {
    assert.deepEqual(new Drafts("2").of(chat), { typed: "", sent: [] });
  }
});

test("what is typed behind a sent message does not touch it", () => {
  const drafts = new Drafts("1");
  drafts.addSent(null, { text: "sent", clientId: "x" });
  drafts.type(null, "typed since");
  assert.deepEqual(drafts.of(null), {
    typed: "typed since", sent: [{ text: "sent", clientId: "x" }],
  });
  assert.equal(drafts.dropSent(null, "another"), false);
  assert.equal(drafts.dropSent(null, "x"), true);
  assert.deepEqual(drafts.of(null), { typed: "typed since", sent: [] });
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

test("an account that has signed out leaves nothing and writes nothing more", () => {
  const drafts = new Drafts("1");
  const other = new Drafts("11");
  drafts.type(null, "mine");
  other.type(null, "another account's");
  drafts.close();
  drafts.type(null, "too late");
  drafts.addSent("c1", { text: "too late", clientId: "x" });
  assert.deepEqual(kept(), ["vitrine.draft.11.new"]);
});

test("all drafts can be forgotten, and only they", () => {
  localStorage.setItem("vitrine.theme", "dark");
  localStorage.setItem("vitrine.draft.new", "from before accounts had drafts of their own");
  new Drafts("1").type("c1", "mine");
  forgetAll("draft.");
  assert.deepEqual(kept(), ["vitrine.theme"]);
});

test("without storage nothing is remembered and nothing breaks", () => {
  Object.defineProperty(globalThis, "localStorage", {
    get() {
      throw new Error("forbidden");
    },
    configurable: true,
  });
  const drafts = new Drafts("1");
  drafts.type(null, "x");
  drafts.close();
  assert.deepEqual(drafts.of(null), { typed: "", sent: [] });
});
