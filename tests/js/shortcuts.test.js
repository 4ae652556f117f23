import assert from "node:assert/strict";
import { test } from "node:test";

import { keyWords, keyOf, meantBy, means } from "../../static/js/shortcuts.js";

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
  assert.equal(means(press("F2"), { key: "f2" }, true), true); // instead of it, for whoever wants so
  assert.equal(means(press("Escape", { shiftKey: true }), { key: "escape" }, true), false);
  assert.equal(means(press("Escape", { shiftKey: true }), { key: "escape", shift: true }, true), true);
});

test("a key whose name changes with Shift is known by its place", () => {
  const event = press(":", { ctrlKey: true, shiftKey: true, code: "Semicolon" });
  assert.equal(means(event, { key: ";", mod: true, shift: true }, true), true);
});

test("on a keyboard of another script a letter is known by its place", () => {
  const search = { key: "k", mod: true };
  assert.equal(means(press("ن", { ctrlKey: true, code: "KeyK" }), search, true), true);
  assert.equal(means(press("Л", { ctrlKey: true, shiftKey: true, code: "KeyK" }), { ...search, shift: true }, true), true);
  assert.equal(means(press("ن", { ctrlKey: true, code: "KeyL" }), search, true), false);
  assert.equal(means(press("و", { ctrlKey: true, code: "Comma" }), { key: ",", mod: true }, true), true);
  assert.equal(means(press("Ä", { ctrlKey: true, shiftKey: true, code: "Quote" }), { key: "'", mod: true, shift: true }, true), true);
  assert.equal(keyOf({ key: "v", code: "Period" }), "v"); // a Latin keyboard of another order
  assert.equal(keyOf({ key: "؟", code: "Slash" }), "?");
});

test("a sign that needs Shift on this keyboard is meant, unless another shortcut asks for Shift", () => {
  const german = press("/", { ctrlKey: true, shiftKey: true, code: "Digit7" });
  const help = { words: "help", key: "/", mod: true, run: () => {} };
  const other = { words: "other", key: "/", mod: true, shift: true, run: () => {} };
  assert.equal(meantBy(german, [help], true), help);
  assert.equal(meantBy(german, [help, other], true), other);
  const letter = { words: "search", key: "k", mod: true, run: () => {} };
  assert.equal(meantBy(press("K", { ctrlKey: true, shiftKey: true, code: "KeyK" }), [letter], true), undefined);
  const quote = { words: "temporary", key: "'", mod: true, shift: true, run: () => {} };
  assert.equal(meantBy(press("'", { ctrlKey: true, code: "Quote" }), [quote], true), undefined);
});

test("the help names the keys", () => {
  assert.equal(keyWords({ key: "o", mod: true, shift: true }), "Ctrl + Shift + O");
  assert.equal(keyWords({ key: "escape" }), "Esc");
});
