import assert from "node:assert/strict";
import { test } from "node:test";

import { keyWords, means } from "../../static/js/shortcuts.js";

const press = (key, more = {}) => ({
  key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...more,
});

test("a shortcut with a modifier works while typing, also as command", () => {
  const shortcut = { key: "o", mod: true, shift: true };
  assert.equal(means(press("O", { ctrlKey: true, shiftKey: true }), shortcut, true), true);
  assert.equal(means(press("O", { metaKey: true, shiftKey: true }), shortcut, true), true);
  assert.equal(means(press("o", { ctrlKey: true }), shortcut, true), false);
  assert.equal(means(press("O", { ctrlKey: true, shiftKey: true, altKey: true }), shortcut, true), false);
});

test("a plain key is text while typing", () => {
  assert.equal(means(press("/"), { key: "/" }, true), false);
  assert.equal(means(press("/"), { key: "/" }, false), true);
  assert.equal(means(press("?", { shiftKey: true }), { key: "?" }, false), true);
});

test("Escape works everywhere, and with Shift it is another shortcut", () => {
  assert.equal(means(press("Escape"), { key: "escape" }, true), true);
  assert.equal(means(press("Escape", { shiftKey: true }), { key: "escape" }, true), false);
  assert.equal(means(press("Escape", { shiftKey: true }), { key: "escape", shift: true }, true), true);
});

test("a key whose name changes with Shift is known by its place", () => {
  const event = press(":", { ctrlKey: true, shiftKey: true, code: "Semicolon" });
  assert.equal(means(event, { key: ";", mod: true, shift: true }, true), true);
});

test("the help names the keys", () => {
  assert.equal(keyWords({ key: "o", mod: true, shift: true }), "Ctrl + Shift + O");
  assert.equal(keyWords({ key: "escape" }), "Esc");
});
