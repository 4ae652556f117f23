import assert from "node:assert/strict";
import { test } from "node:test";

import { collectionUrl, viewerUrl } from "../../static/js/document-links.js";
import { charsBeforeLine, pageAt, pageName, segments, wholeLines, withTables } from "../../static/js/document-places.js";

const PAGES = [[0, 6, "", 0, 0], [6, 12, "Prices", 0, 0], [12, 12, "Empty", 0, 0], [12, 20, "4", 0, 0]];

test("an address names a passage only if there is one", () => {
  assert.equal(viewerUrl({ document: "d" }), "/documents/d");
  assert.equal(viewerUrl({ document: "d", version: "v", start: 3, end: 9 }), "/documents/d?version=v&start=3&end=9");
  assert.equal(viewerUrl({ document: "d", version: null, start: 9, end: 9 }), "/documents/d");
  assert.equal(collectionUrl("c"), "/documents/collections/c");
});

test("a piece is cut at pages and at the passage, and nothing is lost", () => {
  const text = "abcdefghijklmnopqrst";
  const found = segments({ start: 0, text }, PAGES, { start: 4, end: 8 });
  assert.deepEqual(
    found.map(({ kind, text }) => `${kind}:${text}`),
    ["label:Page 1", "text:abcd", "mark:ef", "label:Prices", "mark:gh", "text:ijkl", "label:Empty", "label:Page 4", "text:mnopqrst"],
  );
  assert.equal(found.filter(({ kind }) => kind !== "label").map(({ text }) => text).join(""), text);
});

test("any piece, page and passage keeps every character, marked where it should be", () => {
  const text = "ab😀d\né🎉h";
  const all = [...text];
  for (let start = 0; start < all.length; start += 1) {
    for (let end = start + 1; end <= all.length; end += 1) {
      for (let from = 0; from < all.length; from += 1) {
        const piece = { start: from, text: all.slice(from).join("") };
        const found = segments(piece, [[0, 3, "", 0, 0], [3, 8, "", 0, 0]], { start, end });
        assert.equal(found.filter(({ kind }) => kind !== "label").map(({ text }) => text).join(""), piece.text);
        const marked = found.filter(({ kind }) => kind === "mark").map(({ text }) => text).join("");
        assert.equal(marked, all.slice(Math.max(from, start), Math.max(from, end)).join(""));
      }
    }
  }
});

test("pages are found by a character", () => {
  assert.deepEqual([0, 5, 6, 11, 12, 19, 99].map((place) => pageAt(PAGES, place)), [1, 1, 2, 2, 4, 4, 4]);
  assert.equal(pageName(PAGES, 1), "Prices");
  assert.equal(pageName(PAGES, 3), "Page 4");
});

test("pieces begin and end with whole lines", () => {
  assert.equal(wholeLines("a\nb\nc"), "a\nb\n");
  assert.equal(wholeLines("abc"), "abc");
  assert.equal(charsBeforeLine("😀b\nc"), 3);
  assert.equal(charsBeforeLine("abc"), 0);
  assert.equal(charsBeforeLine("abc\n"), 0);
});

test("rows of a table stand together, whatever of them is marked", () => {
  const text = "Before\n\n| a | b |\n| --- | --- |\n| 1 \\| 2 | x |\n| 3 |  |\n\nAfter | this |\n";
  const start = text.indexOf("| 1");
  const end = text.indexOf("| 3");
  const blocks = withTables(segments({ start: 0, text }, [], { start, end }));
  assert.deepEqual(blocks.map(({ kind }) => kind), ["text", "table", "text"]);
  assert.equal(blocks[0].text, "Before\n\n");
  assert.equal(blocks[2].text, "After | this |\n");
  assert.ok(blocks[1].hasHead);
  assert.deepEqual(blocks[1].rows, [
    { cells: ["a", "b"], isMarked: false },
    { cells: ["1 | 2", "x"], isMarked: true },
    { cells: ["3", ""], isMarked: false },
  ]);
});

test("what is no table is left as it is", () => {
  const text = "a\nb 😀\n\nc";
  for (let start = 0; start < 6; start += 1) {
    const blocks = withTables(segments({ start: 0, text }, [], { start, end: 6 }));
    assert.equal(blocks.map((block) => block.text).join(""), text);
    assert.equal(blocks.filter(({ kind }) => kind === "mark").map((block) => block.text).join(""), [...text].slice(start, 6).join(""));
  }
});

test("a table that a page divides is two, and one that begins in the middle has no head", () => {
  const text = "| 1 | 2 |\n| 3 | 4 |\n";
  const blocks = withTables(segments({ start: 0, text }, [[0, 10, "A", 0, 0], [10, 20, "B", 0, 0]], null));
  assert.deepEqual(blocks.map(({ kind }) => kind), ["label", "table", "label", "table"]);
  assert.ok(!blocks[1].hasHead);
});
