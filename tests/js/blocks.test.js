import assert from "node:assert/strict";
import { test } from "node:test";

import { BlockStream } from "../../static/js/blocks.js";
import { toHtml } from "../../static/js/markdown.js";

const PIECES = [
  "A paragraph of text with *emphasis*, `code` and 👩‍🚀.\n\n",
  "Two lines\nof one paragraph.\n",
  "# Heading\n",
  "#tag is not a heading\n\n",
  "Setext heading\n===\n",
  "- one\n- two\n  - nested\n- three\n\n",
  "- loose\n\n- items\n\n  with a paragraph\n",
  "1. first\n2. second\n",
  "* * *\n",
  "> quote\nlazy continuation\n\n",
  "```python\ndef f():\n\n    return '# not a heading'\n```\n",
  "~~~\nfence without end\n\n",
  "    indented code\n\n    more of it\n\n",
  "| a | b |\n|---|--:|\n| 1 | 2 |\n\n",
  "````md\n```js\nnested\n```\n````\n",
  "```\n\n```\ntext right behind\n",
  "  ```js\n  indented fence\n    ```\n",
  "- item with code\n  ```sh\n  ls\n  ```\n- next\n\n",
  "$$\na\n- b\n= c\n$$\n",
  "\\[ x^2 \\] and \\(y\\)\n",
  "$$ opened and\n- never closed\n\n",
  "Prices of $5 and $6, and $x$.\n\n",
  "text before\n| a | b |\n|---|---|\n| 1 | 2 |\n",
  "A [link][early] and an unknown [one][late].\n\n",
  "<div>raw html</div>\n\n",
  "\n\n\n",
  "-\n",
  "+ other bullet\n",
];

/** Pseudo-random numbers from a seed, so that a failure can be repeated. */
function* random(seed) {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    yield state / 2 ** 31;
  }
}

/** Render a text as it arrives in pieces, the way that prose.js does. */
function streamed(text, nextSize) {
  const stream = new BlockStream();
  const references = {};
  let finalHtml = "";
  let tailHtml = "";
  for (let end = 0; end < text.length; ) {
    end = Math.min(text.length, end + nextSize());
    const { final, tail } = stream.update(text.slice(0, end));
    finalHtml += toHtml(final, references);
    tailHtml = toHtml(tail, { ...references });
  }
  return finalHtml + tailHtml;
}

test("a streamed text looks like the whole, however it is cut", () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const numbers = random(seed);
    const next = () => numbers.next().value;
    const count = 1 + Math.floor(next() * 10);
    const body = Array.from({ length: count }, () => PIECES[Math.floor(next() * PIECES.length)]);
    const text = `[early]: https://example.com\n\n${body.join("")}`;
    const size = () => 1 + Math.floor(next() * (seed % 3 ? 7 : 60));
    assert.equal(streamed(text, size), toHtml(text), `seed ${seed}: ${JSON.stringify(text)}`);
  }
});

test("finished blocks are handed out once", () => {
  const stream = new BlockStream();
  assert.deepEqual(stream.update("One.\n\nTw"), { final: "", tail: "One.\n\nTw" });
  assert.deepEqual(stream.update("One.\n\nTwo.\n"), { final: "One.\n\n", tail: "Two.\n" });
  assert.deepEqual(stream.update("One.\n\nTwo.\nMore"), { final: "", tail: "Two.\nMore" });
});

test("an open code fence is code at once, also before it is closed", () => {
  assert.match(toHtml("```js\nlet a"), /<pre><code class="language-js">let a/);
});

test("half a link definition does not win over the whole one", () => {
  const text = "[a]: https://example.com/long\n\n[a] is a link\n\nend\n";
  assert.equal(streamed(text, () => 1), toHtml(text));
});

test("notices when a stop cut what was final", () => {
  const stream = new BlockStream();
  stream.update("One.\n\nTwo.\n\nThree.\n");
  assert.equal(stream.holds("One."), false);
  assert.equal(stream.holds("One.\n\nTwo.\n\nThr"), true);
});

test("notices when an answer is written anew, however long it is", () => {
  const stream = new BlockStream();
  stream.update("One.\n\nTwo.\n\nThree.\n");
  assert.equal(stream.holds("Uno.\n\nDos.\n\nTres.\n\nCuatro.\n"), false);
  assert.equal(stream.holds("One.\n\nTwo.\n\nDrei.\n"), true, "the tail is rendered anew anyhow");
});

test("no line of a long code block is parsed twice, and its end is seen", () => {
  const stream = new BlockStream();
  stream.update("Text\n\n```js\nlet a;\n");
  assert.deepEqual(stream.fence && [stream.fence.language, stream.fence.codeStart], ["js", 12]);
  const text = "Text\n\n```js\nlet a;\n# no heading\n\n- no list\n``\n";
  assert.deepEqual(stream.update(text).final, "");
  assert.deepEqual(stream.update(`${text}\`\`\`\`\nBehind`), {
    final: "```js\nlet a;\n# no heading\n\n- no list\n``\n````\n", tail: "Behind",
  });
  assert.equal(stream.fence, null);
});

test("notices when a stop cut a fence away", () => {
  const stream = new BlockStream();
  stream.update("Text\n\n```js\nlet a;\n");
  assert.equal(stream.holds("Text\n\n```"), false);
  assert.equal(stream.holds("Text\n\n```js\nlet"), true);
});
