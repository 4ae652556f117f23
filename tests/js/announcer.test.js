import assert from "node:assert/strict";
import { test } from "node:test";

import { Announcer, sentencesBehind } from "../../static/js/announcer.js";

test("sentences are said when they are whole", () => {
  const text = "First one. Second is not";
  const { words, to } = sentencesBehind(text, 0, false);
  assert.equal(words, "First one.");
  assert.equal(sentencesBehind(`${text} over. `, to, false).words, "Second is not over.");
});

test("the end says what is left", () => {
  assert.equal(sentencesBehind("No full stop", 0, true).words, "No full stop");
});

test("languages without spaces have sentences too", () => {
  assert.equal(sentencesBehind("これは本です。次の", 0, false).words, "これは本です。");
});

test("code is named and not read, and waited for", () => {
  const open = "Look:\n```js\nlet a = 1;\n";
  assert.equal(sentencesBehind(open, 0, false).words, "");
  assert.equal(sentencesBehind(`${open}\`\`\`\nDone.\n`, 0, false).words, "Look: Code block. Done.");
});

test("marks of markdown are not read", () => {
  const text = "## A *title*\n- see [the docs](https://example.com)\n";
  assert.equal(sentencesBehind(text, 0, false).words, "A title see the docs");
});

/** What is said, in a region that stands for the page's. */
function spoken() {
  const said = [];
  globalThis.document = { createElement: () => ({ append: (text) => said.push(text), setAttribute() {} }) };
  const region = { append() {}, children: [], firstElementChild: null };
  return { said, announcer: new Announcer(/** @type {any} */ (region)) };
}

test("an old answer that is drawn anew is not said, a new one is even if it came at once", () => {
  const { said, announcer } = spoken();
  announcer.follow("old", "Said long ago.", true, false);
  assert.deepEqual(said, []);
  announcer.follow("new", "Here it is.", true, true);
  announcer.follow("new", "Here it is.", true, true);
  assert.deepEqual(said, ["Answering.", "Here it is."]);
});

test("of answers side by side each is said to its end, once", () => {
  const { said, announcer } = spoken();
  announcer.follow("a", "A one. ", false, true);
  announcer.follow("b", "B one. ", false, true);
  announcer.follow("a", "A one. A two.", true, true);
  announcer.follow("b", "B one. B two.", true, true);
  assert.deepEqual(said, ["Answering.", "A one.", "Answering.", "B one.", "A two.", "B two."]);
});

test("what was on the screen is not said again", () => {
  const { said, announcer } = spoken();
  announcer.skip("a", "Read already. ");
  announcer.follow("a", "Read already. And this.", true, false);
  assert.deepEqual(said, ["And this."]);
});

test("a line that went and came back is said once each; that a session ended is the status bar's", () => {
  const { said, announcer } = spoken();
  for (const state of ["connecting", "open", "waiting", "connecting", "waiting", "connecting", "open"]) announcer.sayConnection(state);
  assert.deepEqual(said.splice(0), ["No connection.", "Connected again."]);
  for (const state of ["signed-out", "connecting", "open"]) announcer.sayConnection(state);
  assert.deepEqual(said, ["Connected again."]);
});

test("how an answer ended is said once, behind what it says, and also where it says nothing", () => {
  const { said, announcer } = spoken();
  const end = "The model is gone. What was written is kept.";
  announcer.follow("a", "Begun", false, true);
  announcer.follow("a", "Begun", true, true, end);
  announcer.follow("a", "Begun", true, true, end);
  announcer.follow("refused", "", true, true, "This answer was refused.");
  announcer.follow("old", "Long ago", true, false, end);
  assert.deepEqual(said, ["Answering.", "Begun", end, "Answering.", "This answer was refused."]);
});

test("what a tool waits for is asked once", () => {
  const { said, announcer } = spoken();
  announcer.ask("call-1", "May it?");
  announcer.ask("call-1", "May it?");
  announcer.ask("call-2", "May this?");
  assert.deepEqual(said, ["May it?", "May this?"]);
});
