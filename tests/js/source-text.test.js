import assert from "node:assert/strict";
import { test } from "node:test";

import { hashAt, sourcesFor } from "../../static/js/source-text.js";

const SOURCES = [
  { kind: "documents", id: "1", name: "Annual report.pdf", about: "" },
  { kind: "collections", id: "2", name: "Reports", about: "" },
  { kind: "documents", id: "3", name: "reply.md", about: "" },
];
const ids = (query, picked) => sourcesFor(SOURCES, query, picked).map(({ id }) => id);

test("a sign calls at the beginning and behind white space, and no heading or number does", () => {
  assert.deepEqual(hashAt("#Re", 3), { from: 0, query: "re" });
  assert.deepEqual(hashAt("what is in #annual rep", 22), { from: 11, query: "annual rep" });
  assert.deepEqual(hashAt("#", 1), { from: 0, query: "" });
  for (const text of ["# Heading", "## Two", "C#", "a#b", "#one\ntwo", ""]) assert.equal(hashAt(text, text.length), null, text);
});

test("names that begin alike come first, collections before documents, what is picked not at all", () => {
  assert.deepEqual(ids("rep"), ["2", "3", "1"]);
  assert.deepEqual(ids(""), ["2", "1", "3"]);
  assert.deepEqual(ids("rep", new Set(["2"])), ["3", "1"]);
  assert.deepEqual(ids("zzz"), []);
});
