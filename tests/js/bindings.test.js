import assert from "node:assert/strict";
import { test } from "node:test";

import { chordOf, ownKeys, withOwnKeys } from "../../static/js/bindings.js";
import { chatShortcuts } from "../../static/js/commands.js";
import { keepOwnKeys, keysOf, objection } from "../../static/js/key-choice.js";
import { means } from "../../static/js/shortcuts.js";

const press = (key, more = {}) => ({
  key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...more,
});
const usual = chatShortcuts(new Proxy({}, { get: () => () => {} }), () => {});

test("each shortcut is known by its usual keys, and no two have the same", () => {
  assert.equal(new Set(usual.map(chordOf)).size, usual.length);
  for (const shortcut of usual) assert.doesNotMatch(objection(usual, shortcut, shortcut) ?? "", /taken/);
});

test("keys that were pressed mean the shortcut that they were given to, whatever keys", () => {
  const events = [
    press("J", { ctrlKey: true, shiftKey: true, code: "KeyJ" }), press("j", { metaKey: true, code: "KeyJ" }),
    press("?", { shiftKey: true }), press("F2"), press("ArrowUp", { altKey: true }),
    press("Escape", { shiftKey: true }), press("å", { altKey: true, code: "KeyA" }),
    press("ن", { ctrlKey: true, code: "KeyK" }), press("/", { ctrlKey: true, shiftKey: true, code: "Digit7" }),
    press(":", { ctrlKey: true, shiftKey: true, code: "Semicolon" }),
  ];
  for (const event of events) {
    const [shortcut] = withOwnKeys([usual[0]], { [chordOf(usual[0])]: keysOf(event) });
    assert.equal(means(event, shortcut, false), true, event.key);
    assert.equal(means(press("q"), shortcut, false), false);
  }
});

test("keys of another shortcut, of the browser and of writing are refused with the reason", () => {
  const [first, second] = usual;
  assert.match(objection(usual, first, second), new RegExp(second.words));
  assert.match(objection(usual, first, { key: "c", mod: true }), /browser/);
  assert.match(objection(usual, first, keysOf(press("/", { ctrlKey: true, shiftKey: true, code: "Digit7" }))), /taken/);
  assert.match(objection(usual, first, keysOf(press("'", { ctrlKey: true, code: "Quote" }))), /taken/);
  assert.match(objection(usual, first, { key: "tab" }), /writing/);
  assert.match(objection(usual, first, { key: "g" }), /typed/);
  assert.equal(objection(usual, first, { key: "g", alt: true }), null);
});

test("modifiers alone are no keys", () => {
  assert.equal(keysOf(press("Shift", { shiftKey: true })), null);
  assert.equal(keysOf(press("Control", { ctrlKey: true })), null);
});

test("what is kept comes back, and what is broken is as if it were not there", () => {
  const kept = new Map();
  globalThis.localStorage = {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
    removeItem: (name) => kept.delete(name),
  };
  keepOwnKeys({ "mod+shift+o": { key: "j", mod: true } });
  assert.deepEqual(ownKeys(), { "mod+shift+o": { key: "j", mod: true } });
  keepOwnKeys({});
  assert.equal(kept.size, 0);
  for (const broken of ["{", "null", "[1]", '{"a": 5}', '"x"']) {
    kept.set("vitrine.shortcuts", broken);
    assert.deepEqual(ownKeys(), {}, broken);
  }
  delete globalThis.localStorage;
});
