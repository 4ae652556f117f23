import assert from "node:assert/strict";
import { test } from "node:test";

import { Library } from "../../static/js/library.js";
import { Selection } from "../../static/js/selection.js";
import { conversation } from "./fakes.js";

const NOW = new Date("2026-11-20T12:00:00");
const at = (iso) => new Date(iso).toISOString();

function filled() {
  const library = new Library(["f1"]);
  library.load({
    pinned: [conversation("p", { pinned: true, updated_at: at("2025-01-01T00:00:00") })],
    folders: [{ id: "f1", name: "One", version: 1 }, { id: "f2", name: "Two", version: 1 }],
    items: [
      conversation("a", { updated_at: at("2026-11-20T10:00:00") }),
      conversation("b", { updated_at: at("2026-11-19T10:00:00") }),
      conversation("c", { updated_at: at("2026-10-01T10:00:00") }),
    ],
    next: "behind",
  });
  library.addPage([conversation("in", { folder: "f1" })], "more", "f1");
  return library;
}

const shown = (library) =>
  library.sections(NOW).map(({ kind, title, chats }) => [kind, title, chats.map(({ id }) => id).join()]);

test("each chat is listed once, where it belongs", () => {
  assert.deepEqual(shown(filled()), [
    ["pinned", "Pinned", "p"],
    ["folder", "One", "in"],
    ["folder", "Two", ""],
    ["day", "Today", "a"],
    ["day", "Yesterday", "b"],
    ["day", "October", "c"],
  ]);
});

test("what is archived is not listed, and a folder that is gone leaves its chats to the days", () => {
  const library = filled();
  library.conversations.set("a", conversation("a", { archived: true, pinned: true }));
  library.folders = library.folders.slice(1);
  library.conversations.set("in", conversation("in", { folder: "f1", updated_at: at("2026-11-20T09:00:00") }));
  assert.deepEqual(shown(library).filter(([kind]) => kind === "day")[0], ["day", "Today", "in"]);
  assert.equal(shown(library).some(([, , chats]) => chats.includes("a")), false);
});

test("only open folders are read and chosen from", () => {
  const library = filled();
  assert.deepEqual(library.visible.includes("in"), true);
  assert.equal(library.toggleFolder("f1"), false);
  assert.deepEqual(library.visible.includes("in"), false);
  assert.deepEqual(library.unreadFolders, []);
  library.toggleFolder("f2");
  assert.deepEqual(library.unreadFolders.map(({ id }) => id), ["f2"]);
});

test("a folder says when it has more than is known", () => {
  const library = filled();
  const more = () => library.sections(NOW).find(({ title }) => title === "One").hasMore;
  assert.equal(more(), true);
  library.addPage([], null, "f1");
  assert.equal(more(), false);
});

test("Shift chooses all between, whichever way", () => {
  const order = ["a", "b", "c", "d", "e"];
  const selection = new Selection();
  selection.toggle("d");
  selection.extend("b", order);
  assert.deepEqual([...selection.chosen].sort(), ["b", "c", "d"]);
  selection.extend("c", order);
  assert.equal(selection.size, 3);
  selection.clear();
  selection.extend("c", order, "a");
  assert.deepEqual([...selection.chosen].sort(), ["a", "b", "c"]);
  selection.toggle("b");
  assert.deepEqual([...selection.chosen].sort(), ["a", "c"]);
});

test("all that are seen are chosen beside those that were", () => {
  const selection = new Selection();
  selection.toggle("in a closed folder");
  selection.all(["a", "b"]);
  assert.deepEqual([...selection.chosen], ["in a closed folder", "a", "b"]);
});

test("a row that is gone is no beginning", () => {
  const selection = new Selection();
  selection.toggle("gone");
  selection.drop("gone");
  selection.extend("b", ["a", "b"], "nowhere");
  assert.deepEqual([...selection.chosen], ["b"]);
});
