import assert from "node:assert/strict";
import { test } from "node:test";

import { citedBy, idsOf, placeOf, rowOf, unreadWords } from "../../static/js/sources.js";

const excerpt = (number, more = {}) => ({
  number, document: `d${number}`, version: "v", collection: "c", name: `${number}.md`, start: 0, end: 9,
  first_page: 1, last_page: 1, page_label: "", context: "", chunks: [number], ...more,
});
const found = (excerpts, is_whole = false) => ({ query: "q", excerpts, is_whole });
const numbersOf = (cited) => cited.map((one) => one.excerpt.number);

test("a question takes ids along, and the page keeps the names", () => {
  const sources = { collections: [{ id: "c", name: "Notes" }], documents: [{ id: "d", name: "a.md" }] };
  assert.deepEqual(idsOf(sources), { collections: ["c"], documents: ["d"] });
});

test("of documents that were picked it is said which could not be looked at", () => {
  assert.deepEqual(unreadWords(found([])), []);
  assert.deepEqual(unreadWords({ ...found([]), num_waiting: 1, num_failed: 2 }), [
    "1 document had not been read yet.", "2 documents could not be read.",
  ]);
});

test("an answer can cite what was found for it and for answers before it", () => {
  const path = [
    { id: "u1" }, { id: "a1", found: found([excerpt(1)]) },
    { id: "u2", found: null }, { id: "a2", found: found([excerpt(2)]) },
  ];
  const known = citedBy(path);
  assert.deepEqual([...known].map(([number, { answer }]) => [number, answer]), [[1, "a1"], [2, "a2"]]);
  assert.equal(citedBy(path.slice(0, 1)).size, 0);
});

test("a place is its page and the last heading", () => {
  assert.deepEqual(placeOf(excerpt(1, { page_label: "iv", context: "Rules\n Office \n" })), { page: "p. iv", heading: "Office" });
  assert.deepEqual(placeOf(excerpt(1)), { page: "", heading: "" });
});

test("what is cited comes first, also from an answer before", () => {
  const own = found([excerpt(2), excerpt(3), excerpt(4)]);
  const numbers = citedBy([{ id: "a1", found: found([excerpt(1)]) }, { id: "a2", found: own }]);
  const { excerpts, whole } = rowOf(own, "a2", [3, 1], numbers);
  assert.deepEqual(numbersOf(excerpts), [1, 3, 2, 4]);
  assert.deepEqual(excerpts.map(({ answer }) => answer), ["a1", "a2", "a2", "a2"]);
  assert.deepEqual(whole, []);
});

test("a document that was read whole is listed once beside what is cited", () => {
  const own = found([1, 2, 3].map((number) => excerpt(number, { document: "d" })), true);
  const { excerpts, whole } = rowOf(own, "a", [2], citedBy([{ id: "a", found: own }]));
  assert.deepEqual(numbersOf(excerpts), [2]);
  assert.equal(whole.length, 1);
});

test("a document that was read whole beside what was searched is listed once too", () => {
  const own = found([excerpt(1, { document: "d", chunks: [] }), excerpt(2, { document: "d", chunks: [] }), excerpt(3)]);
  const { excerpts, whole } = rowOf(own, "a", [], citedBy([{ id: "a", found: own }]));
  assert.deepEqual(numbersOf(excerpts), [3]);
  assert.deepEqual(whole.map(({ document }) => document), ["d"]);
});
