import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { colouredEnd, firstPart, isColourable } from "../../static/js/code-colour.js";
import library from "../../static/vendor/highlight.js";

const SAMPLES = {
  javascript: readFileSync(new URL("../../static/js/markdown.js", import.meta.url), "utf8"),
  python: readFileSync(new URL("../browser/scripted.py", import.meta.url), "utf8"),
  css: readFileSync(new URL("../../static/css/components/prose.css", import.meta.url), "utf8"),
  bash: "for f in *; do\n  cat <<EOF\n$f # no comment\nEOF\ndone\n",
  json: '{\n  "a": [1, true, null],\n  "b": {"c": "d"}\n}\n',
  xml: "<ul class=\"a\">\n  <!-- two\n lines -->\n  <li>x</li>\n</ul>\n",
  sql: "SELECT a, 'b\nc' FROM d -- e\nWHERE f = 1;\n",
};

/** The parts of `text` when it comes in pieces, and how many characters were coloured in all. */
function streamed(language, text, size) {
  let html = "";
  let settled = 0;
  let numColoured = 0;
  let open = "";
  for (let end = 0; end < text.length; ) {
    end = Math.min(text.length, end + size);
    let rest = text.slice(settled, end);
    numColoured += rest.length;
    for (let part; (part = firstPart(library, language, rest)); ) {
      html += part.html;
      settled += part.numChars;
      rest = rest.slice(part.numChars);
    }
    open = rest && colouredEnd(library, language, rest);
  }
  return { html: html + open, numColoured };
}

for (const [language, text] of Object.entries(SAMPLES)) {
  test(`colours of ${language} that come in pieces are those of the whole`, () => {
    const whole = library.highlight(text, { language }).value;
    for (const size of [17, 200, 100_000]) assert.equal(streamed(language, text, size).html, whole, `${size}`);
  });
}

test("what is finished is not coloured again", () => {
  const cost = (count) => streamed("python", "value = compute(1, 'two')\n".repeat(count), 100).numColoured;
  assert.ok(cost(800) < 2.2 * cost(400), `${cost(400)}, ${cost(800)}`);
});

test("colours keep the text, and unknown languages and endless comments have none", () => {
  const html = colouredEnd(library, "python", "return 1 < 2 # &\n");
  assert.match(html, /hljs-keyword/);
  assert.equal(html.replace(/<[^>]+>/g, ""), "return 1 &lt; 2 # &amp;\n");
  assert.equal(colouredEnd(library, "nolanguage", "x"), null);
  assert.equal(colouredEnd(null, "python", "x"), null);
  assert.equal(isColourable(60_000), false);
  const endless = firstPart(library, "javascript", `/* ${"x\n".repeat(4000)}`);
  assert.equal(endless.html, null);
  assert.ok(endless.numChars < 500);
});
