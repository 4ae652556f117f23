import assert from "node:assert/strict";
import { test } from "node:test";

import { reportFacts, size, statusLine } from "../../static/js/import-words.js";

test("each state of an import says where it is", () => {
  const line = (status, report = {}, error = "") => statusLine({ status, report, error });
  assert.equal(line("checking"), "Looking through the file");
  assert.equal(line("checking", { num_chats: 1200, num_skipped: 1 }),
    "Looking through the file: 1,201 chats so far");
  assert.equal(line("checked", { num_new: 1 }), "1 chat can be imported.");
  assert.equal(line("checked", { num_new: 0 }), "There is nothing to import.");
  assert.match(line("importing", { num_chats: 3 }), /^Importing: 3 chats so far/);
  assert.equal(line("done", { num_new: 3 }), "3 chats imported.");
  assert.equal(line("done", {}), "Nothing new was imported.");
  assert.equal(line("failed", {}, "The file is no JSON."), "The file is no JSON.");
});

test("the report names what is left out", () => {
  assert.deepEqual(reportFacts({}), []);
  const report = {
    source: "chatgpt", num_messages: 1, num_known: 2, num_skipped: 1, notes: { images: 3, files: 1 },
  };
  assert.deepEqual(reportFacts(report), [
    "From ChatGPT, with 1 message",
    "2 chats left out: here already",
    "1 entry left out: cannot be imported",
    "Not imported: images, 3 times",
    "Not imported: files, once",
  ]);
});

test("sizes are short", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 20 * 2 ** 20, 3 * 2 ** 40].map(size),
    ["0 bytes", "1,023 bytes", "1.0 KiB", "1.5 KiB", "20 MiB", "3,072 GiB"]);
});
