import assert from "node:assert/strict";
import { test } from "node:test";

import { ImportPanel } from "../../static/js/import-panel.js";

/** What the panel finds in its page, each by its selector. */
function fakeRoot() {
  const found = new Map();
  const make = () => ({
    textContent: "", dataset: {}, hidden: false, parentElement: { hidden: false },
    listeners: {},
    addEventListener(name, listener) {
      this.listeners[name] = listener;
    },
    replaceChildren() {}, removeAttribute() {},
    querySelector(selector) {
      if (!found.has(selector)) found.set(selector, make());
      return found.get(selector);
    },
  });
  return make();
}

test("of what goes on the beginning is heard, of how far it is nothing, and every end", async () => {
  const root = fakeRoot();
  let news;
  globalThis.EventSource = class {
    addEventListener = (name, listener) => (news = (value) => listener({ data: JSON.stringify(value) }));
    close() {}
  };
  const at = (status, report = {}) => ({ id: "i", file_name: "a.zip", size_bytes: 9, status, error: "", report });
  const panel = new ImportPanel(root, { imports: async () => ({ items: [at("checking")] }) });
  const heard = [];
  const seen = [];
  const look = () => {
    const words = root.querySelector("[role=status]").textContent;
    if (heard.at(-1) !== words) heard.push(words);
    seen.push(root.querySelector("[data-import-status]").textContent);
  };
  await panel.resume();
  look();
  const steps = [
    at("checking", { num_chats: 2 }), at("checking", { num_chats: 40 }), at("importing", { num_chats: 1 }),
    at("importing", { num_chats: 30 }), at("done", { num_new: 40 }),
  ];
  for (const step of steps) {
    news(step);
    look();
  }
  delete globalThis.EventSource;
  assert.deepEqual(heard, [
    "Looking through the file", "Importing: 1 chat so far. You may leave this page.", "40 chats imported.",
  ]);
  assert.equal(seen[2], "Looking through the file: 40 chats so far");
  assert.equal(seen[4], "Importing: 30 chats so far. You may leave this page.");
});

test("another file takes the place of one that was not started, and of no other", async () => {
  globalThis.XMLHttpRequest = class {
    upload = { addEventListener() {} };
    open() {}
    setRequestHeader() {}
    addEventListener() {}
    send() {}
  };
  for (const [status, wanted] of [["checked", ["i"]], ["done", []]]) {
    const root = fakeRoot();
    const removed = [];
    const api = {
      imports: async () => ({
        items: [{ id: "i", file_name: "a.zip", size_bytes: 9, status: "checking", error: "", report: {} }],
      }),
      removeImport: async (id) => removed.push(id),
    };
    let news;
    globalThis.EventSource = class {
      addEventListener = (name, listener) => (news = listener);
      close() {}
    };
    await new ImportPanel(root, api).resume();
    news({ data: JSON.stringify({ ...(await api.imports()).items[0], status }) });
    const input = root.querySelector("input[type=file]");
    input.files = [{ name: "b.zip", size: 1 }];
    input.listeners.change();
    assert.deepEqual(removed, wanted);
  }
  delete globalThis.EventSource;
  delete globalThis.XMLHttpRequest;
});
