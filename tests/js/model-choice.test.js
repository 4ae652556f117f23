import assert from "node:assert/strict";
import { test } from "node:test";

import { ModelChoice } from "../../static/js/model-choice.js";

const MODELS = ["small", "large", "other", "fourth", "fifth"].map((name) => ({ name, title: name, default: name === "small" }));

/** A tab's storage. */
function storage() {
  const values = new Map();
  return { getItem: (name) => values.get(name) ?? null, setItem: (name, value) => values.set(name, value) };
}

function choice({ chosen = { default: "", pinned: [] }, tab = storage() } = {}) {
  const saved = [];
  const made = new ModelChoice((change) => saved.push(change), tab);
  made.models = MODELS;
  made.begin(chosen);
  made.open(null);
  return { made, saved, tab };
}

test("chosen here counts first, then the chat's own, then the account's last one, then the site's", () => {
  const { made } = choice({ chosen: { default: "large", pinned: [] } });
  assert.equal(made.current().name, "large");
  assert.equal(made.current("other").name, "other");
  made.chooseHere("fourth");
  assert.equal(made.current("other").name, "fourth");
  assert.equal(choice().made.current().name, "small");
  assert.equal(choice({ chosen: { default: "gone", pinned: [] } }).made.current("gone too").name, "small");
});

test("a choice is kept with the account, once", () => {
  const { made, saved } = choice();
  made.choose("large");
  made.choose("large");
  assert.deepEqual(saved, [{ default_model: "large" }]);
  made.open("another chat");
  assert.equal(made.current().name, "large");
});

test("pins are kept with the account", () => {
  const { made, saved } = choice({ chosen: { default: "", pinned: ["other"] } });
  made.togglePin("large");
  made.togglePin("other");
  assert.deepEqual(saved, [{ pinned_models: ["other", "large"] }, { pinned_models: ["large"] }]);
});

test("one pin too many is refused, and not shown", () => {
  const full = Array.from({ length: 50 }, (_, n) => `model ${n}`);
  const { made, saved } = choice({ chosen: { default: "", pinned: full } });
  made.togglePin("large");
  assert.equal(saved.at(-1).pinned_models.length, 51, "the server says why");
  assert.deepEqual(made.pinned, full);
  made.togglePin("model 0");
  assert.deepEqual(made.pinned, full.slice(1));
});

test("who answers beside outlives a reload, chat by chat", () => {
  const { made, tab } = choice();
  made.open("c1");
  made.toggleBeside("large");
  made.open("c2");
  assert.deepEqual(made.beside("small"), []);
  const { made: reloaded } = choice({ tab });
  reloaded.open("c1");
  assert.deepEqual(reloaded.beside("small"), ["large"]);
  assert.deepEqual(reloaded.beside("large"), []);
  reloaded.toggleBeside("large");
  reloaded.open("c1");
  assert.deepEqual(reloaded.beside("small"), []);
});

test("a new chat takes it along to its address", () => {
  const { made } = choice();
  made.toggleBeside("large");
  made.moveTo("c1");
  made.open(null);
  assert.deepEqual(made.beside("small"), []);
  made.open("c1");
  assert.deepEqual(made.beside("small"), ["large"]);
});

test("at most three answer beside, also where nothing can be kept", () => {
  const { made } = choice({ tab: { getItem: () => "no JSON", setItem: () => assert.fail("full") } });
  assert.ok(["large", "other", "fourth"].every((name) => made.toggleBeside(name)));
  assert.equal(made.toggleBeside("fifth"), false);
  assert.equal(made.beside("small").length, 3);
});
