import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../static/js/markdown.js";
import { drawableSoFar, formulaAt } from "../../static/js/math-syntax.js";
import katex from "../../static/vendor/katex/katex.js";

const formulas = (text) => [...toHtml(text).matchAll(/class="math[^>]*>([^<]*)</g)].map(([, tex]) => tex);

test("formulas in each of the four forms", () => {
  assert.deepEqual(formulas("Let $x^2$, \\(y\\) and $$z$$ be, and \\[w\\]."), ["x^2", "y", "z", "w"]);
  assert.deepEqual(formulas("$$\n\\begin{aligned}\na &= b \\\\\n- c\n\\end{aligned}\n$$\n").length, 1);
  assert.deepEqual(formulas("1. Step\n   \\[\n   a\n   \\]\n2. Next\n"), ["a"]);
  assert.deepEqual(formulas("the $n$th of $x$-axis ($k$)"), ["n", "x", "k"]);
});

for (const text of [
  "It costs $5 and $6.", "$5-$6", "between $1,000 and $2,000", "US$5 or CA$6", "I have $5, you have 6$",
  "$20 million people$", "$HOME/$USER", "price in $", "$$ or $$$", "`$x$` and ``$$y$$``", "\\$x\\$",
  "```\n$x$\n\\[y\\]\n```", "    $$\n    code\n    $$", "a $5 tip; $ 6 $", "$$\n\nnothing\n\n$$",
]) {
  test(`no formula in: ${text}`, () => assert.deepEqual(formulas(text), []));
}

test("a formula never loses or adds text", () => {
  const pieces = ["$", "$$", "\\(", "\\)", "\\[", "\\]", "a", " ", "5", "\n", "`", "\\", "{", "}"];
  for (let seed = 1, state = 1; seed <= 3000; seed += 1) {
    let text = "";
    for (let count = 0; count < 12; count += 1) {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      text += pieces[state % pieces.length];
    }
    for (let at = 0; at < text.length; at += 1) {
      const found = formulaAt(text, at);
      if (!found) continue;
      assert.ok(found.end > at && found.end <= text.length, text);
      assert.ok(text.slice(at, found.end).includes(found.tex), text);
    }
  }
});

test("an open formula is one while the text grows, unless a blank line ends it", () => {
  assert.match(toHtml("$$\n\\frac{1}{2", {}, true), /math--display">\\frac/);
  assert.doesNotMatch(toHtml("$$\n\\frac{1}{2"), /math/);
  assert.doesNotMatch(toHtml("$$ was\n\nthe price", {}, true), /math/);
});

test("each beginning of a formula can be drawn, so that it grows on the screen", () => {
  const tex = String.raw`\begin{pmatrix} a & \frac{1}{2} \\ \left( \sqrt{x_1^{2}} \right) & c \end{pmatrix} = \sum_{i=0}^n i`;
  let longest = 0;
  for (let end = 1; end <= tex.length; end += 1) {
    const drawable = [...drawableSoFar(tex.slice(0, end))].find((part) => {
      try {
        return katex.renderToString(part, { throwOnError: true });
      } catch {
        return false;
      }
    });
    assert.notEqual(drawable, undefined, tex.slice(0, end));
    longest = Math.max(longest, drawable.length);
  }
  assert.equal(longest, tex.length);
});
