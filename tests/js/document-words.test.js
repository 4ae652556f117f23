import assert from "node:assert/strict";
import { test } from "node:test";

import { excerpt, factsOf, isUnfinished, placeOf, stateOf, tagsOf, uploadLine, whoReads } from "../../static/js/document-words.js";
import { shortened } from "../../static/js/document-uploads.js";

const VERSION = { id: "v", number: 1, state: "ready", reason: "", notes: [], num_pages: 3, num_chunks: 12, num_embedded: 12, created_at: "2020-05-03T10:00:00Z", ready_at: null };
const DOCUMENT = { id: "d", collection: "c", name: "a.pdf", media_type: "", tags: [], source_url: "", created_at: "2020-05-03T10:00:00Z", created_by: { name: "Alice" }, size_bytes: 2048, live_version: null, version: VERSION };
const withVersion = (version) => ({ ...DOCUMENT, version: { ...VERSION, ...version } });

test("a document's state says how far it is, or why it failed", () => {
  assert.deepEqual(stateOf(withVersion({ state: "queued" })), { state: "queued", text: "Waiting to be read", progress: null });
  assert.deepEqual(stateOf(withVersion({ state: "embedding", num_embedded: 3 })), { state: "embedding", text: "3 of 12 passages", progress: 0.25 });
  assert.equal(stateOf(withVersion({ state: "embedding", num_chunks: 0, num_embedded: 0 })).progress, null);
  assert.deepEqual(stateOf(DOCUMENT), { state: "ready", text: "Ready" });
  assert.equal(stateOf(withVersion({ state: "failed", reason: "It is damaged." })).text, "It is damaged.");
  const replaced = { ...withVersion({ state: "failed", reason: "It is damaged." }), live_version: "w" };
  assert.match(stateOf(replaced).text, /The new version failed: It is damaged\. The one before is still found\./);
  assert.ok(isUnfinished(withVersion({ state: "parsing" })));
  assert.ok(!isUnfinished(DOCUMENT) && !isUnfinished({ ...DOCUMENT, version: null }));
});

test("facts are those that there are", () => {
  assert.equal(factsOf(DOCUMENT), "2.0 KiB · 3 pages · 12 passages · May 3, 2020 · Alice");
  const page = { ...withVersion({ num_pages: 1, number: 2, state: "queued" }), source_url: "https://example.org/a", created_by: null };
  assert.equal(factsOf(page), "2.0 KiB · version 2 · May 3, 2020 · example.org");
  assert.equal(placeOf({ first_page: 2, last_page: 3, context: "Birds\nCanaries" }), "Pages 2–3 · Birds");
  assert.equal(placeOf({ first_page: 2, last_page: 2, page_label: "Prices", context: "" }), "Prices");
});

test("an upload says how much of it is there", () => {
  assert.equal(uploadLine({ state: "waiting", loaded: 0, size: 2048, problem: "" }), "Waiting · 2.0 KiB");
  assert.equal(uploadLine({ state: "sending", loaded: 1024, size: 2048, problem: "" }), "1.0 KiB of 2.0 KiB");
  assert.equal(uploadLine({ state: "sending", loaded: 2048, size: 2048, problem: "" }), "Being checked");
  assert.equal(uploadLine({ state: "failed", loaded: 0, size: 2048, problem: "Too large." }), "Too large.");
});

test("names of those who read, and tags as they are typed", () => {
  assert.equal(whoReads({ user: null, group: { id: 1, name: "Lab" } }), "Group Lab");
  assert.equal(whoReads({ user: null, group: null }), "Everybody here");
  assert.deepEqual(tagsOf(" old, glass ,old,, ،رمل"), ["old", "glass", "رمل"]);
  assert.equal(shortened(`${"x".repeat(300)}.pdf`), `${"x".repeat(196)}.pdf`);
  assert.equal(shortened("a.pdf"), "a.pdf");
});

test("an excerpt holds what was searched for, marked, and no more than it may", () => {
  const text = `${"glass and sand ".repeat(60)}the zanzibar canary (a.b) weighs`;
  const found = excerpt(text, "Zanzibar CANARY", 200);
  assert.deepEqual(found.filter(({ isMarked }) => isMarked).map(({ text }) => text), ["zanzibar", "canary"]);
  assert.ok(found.map(({ text }) => text).join("").length <= 202);
  assert.deepEqual(excerpt("a.b", ".*", 10), [{ text: "a.b", isMarked: false }]);
  assert.equal(excerpt("鸟在玻璃上", "玻璃", 10).find(({ isMarked }) => isMarked)?.text, "玻璃");
});
