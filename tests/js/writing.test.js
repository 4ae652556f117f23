import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { insertText } from "../../static/js/caret.js";
import { copyText } from "../../static/js/dom.js";

const mine = ["document", "navigator"].map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
const put = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true });

afterEach(() => {
  for (const [name, descriptor] of mine) {
    if (descriptor) Object.defineProperty(globalThis, name, descriptor);
    else delete globalThis[name];
  }
});

/** A box, and a page that gives it the focus or not. */
function box({ takesFocus }) {
  const commands = [];
  const events = [];
  const input = {
    value: "Hello", selectionStart: 5, selectionEnd: 5,
    focus: () => takesFocus && (document.activeElement = input),
    setRangeText(text, from, to) {
      this.value = this.value.slice(0, from) + text + this.value.slice(to);
    },
    dispatchEvent: ({ type }) => events.push(type),
  };
  put("document", {
    activeElement: { id: "a field of the dialog" },
    execCommand: (...command) => commands.push(command) > 0,
  });
  return { input, commands, events };
}

test("a text is typed into its box, so that it can be undone", () => {
  const { input, commands } = box({ takesFocus: true });
  insertText(input, " you");
  assert.deepEqual(commands, [["insertText", false, " you"]]);
});

test("a box behind a dialog is written to all the same, and the dialog is not", () => {
  const { input, commands, events } = box({ takesFocus: false });
  insertText(input, " you");
  assert.equal(input.value, "Hello you");
  assert.deepEqual([commands, events], [[], ["input"]]);
});

/** A page over plain http: where a field to copy from was put, and what had the focus. */
function plainPage({ dialog = null, copies = true } = {}) {
  const places = [];
  const holder = (name) => ({ append: () => places.push(name) });
  put("navigator", {});
  put("document", {
    body: holder("body"),
    activeElement: { closest: () => (dialog ? holder(dialog) : null), focus() {} },
    createElement: () => ({ setAttribute() {}, append() {}, select() {}, remove() {} }),
    execCommand: () => copies,
  });
  return places;
}

test("over plain http a text is copied from inside the dialog that is open", async () => {
  const places = plainPage({ dialog: "dialog" });
  await copyText("a link");
  assert.deepEqual(places, ["dialog"]);
});

test("what was not copied is not said to be", async () => {
  const places = plainPage({ copies: false });
  await assert.rejects(copyText("a link"), /did not allow/);
  assert.deepEqual(places, ["body"]);
  put("navigator", { clipboard: { writeText: () => Promise.reject(new Error("NotAllowedError")) } });
  await assert.rejects(copyText("a link"), /did not allow/);
  put("navigator", { clipboard: { writeText: async () => undefined } });
  await copyText("a link");
});
