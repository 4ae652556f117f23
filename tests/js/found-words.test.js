import assert from "node:assert/strict";
import { test } from "node:test";

import { placesOf, wordsOf } from "../../static/js/found-words.js";

const marked = (text, query) => placesOf(text, wordsOf(query)).map(([from, to]) => text.slice(from, to));

test("the words of a query are what is looked for, not its filters", () => {
  assert.deepEqual(wordsOf('Zebra "in the" tag:x folder:"two words" -lion before:2026 &'), ["zebra", "in", "the"]);
  assert.deepEqual(wordsOf("well-known"), ["well-known"]);
  assert.deepEqual(wordsOf("  "), []);
});

test("words that begin so are marked whole, whatever their case and marks", () => {
  assert.deepEqual(marked("Schlüssel und SCHLUSS, Umschlag.", "schluss"), ["Schlüssel", "SCHLUSS"]);
  assert.deepEqual(marked("a Cafe\u0301 here", "cafe"), ["Cafe\u0301"]);
});

test("places are right behind signs that fold to several", () => {
  assert.deepEqual(marked("ﬁne 😀 zebra", "zebra"), ["zebra"]);
  assert.deepEqual(marked("ﬁne", "fine"), ["ﬁne"]);
});

test("where no spaces are written a word begins anywhere", () => {
  assert.deepEqual(marked("東京の天気は", "京の天"), ["京の天"]);
});

test("a text full of it is marked up to a limit", () => {
  assert.equal(placesOf("a ".repeat(2000), ["a"]).length, 500);
});
