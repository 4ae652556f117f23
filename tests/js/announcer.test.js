import assert from "node:assert/strict";
import { test } from "node:test";

import { sentencesBehind } from "../../static/js/announcer.js";

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
