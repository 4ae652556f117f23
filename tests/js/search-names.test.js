import assert from "node:assert/strict";
import { test } from "node:test";

import { nameAt, namesFor, withName } from "../../static/js/search-names.js";

const at = (text, caret = text.length) => nameAt(text, caret);

test("a filter at the caret wants a name", () => {
  assert.deepEqual(at("tag:"), { filter: "tag", query: "", from: 4, to: 4 });
  assert.deepEqual(at("glass Folder:wo"), { filter: "folder", query: "wo", from: 13, to: 15 });
  assert.deepEqual(at('folder:"two wo'), { filter: "folder", query: "two wo", from: 7, to: 14 });
});

test("other words, other filters and a caret within a word do not", () => {
  for (const text of ["", "tag", "before:2026", "vintage:x", "tag:glass ", 'tag:"two words"']) assert.equal(at(text), null, text);
  assert.equal(at("tag:glass", 5), null);
});

test("names that have what is written, without the one that is there already", () => {
  const names = ["Glass", "Sea glass", "Work"];
  assert.deepEqual(namesFor(names, ""), names);
  assert.deepEqual(namesFor(names, "gla"), ["Glass", "Sea glass"]);
  assert.deepEqual(namesFor(names, "glass"), ["Sea glass"]);
  assert.deepEqual(namesFor(names, "none"), []);
  assert.equal(namesFor(Array.from({ length: 50 }, (_, n) => `n${n}`), "n").length, 6);
});

test("a name is put in, in quotes where it has to be, and words behind it stay", () => {
  const put = (text, caret, name) => withName(text, nameAt(text, caret), name);
  assert.deepEqual(put("tag:gl", 6, "glass"), { text: "tag:glass ", caret: 10 });
  assert.deepEqual(put("tag:se old", 6, "Sea glass"), { text: 'tag:"Sea glass" old', caret: 16 });
  assert.deepEqual(put('tag:"se', 7, "Sea glass"), { text: 'tag:"Sea glass" ', caret: 16 });
  assert.deepEqual(put("tag:", 4, 'a "b"'), { text: 'tag:"a  b " ', caret: 12 });
});
