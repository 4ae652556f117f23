import assert from "node:assert/strict";
import { test } from "node:test";

import { artifactsOf, titleIn } from "../../static/js/artifacts.js";

const PAGE = ["<!doctype html>", "<title>Clock</title>", "<h1>It is</h1>", "<p id=now></p>", "<script>show()</script>"];

function block(text, more = {}) {
  return { message: "a", number: 0, language: "html", text, isWhole: true, ...more };
}

function texts(artifacts) {
  return artifacts.map((versions) => versions.map(({ text }) => text));
}

test("a page that is written again is the next version of it", () => {
  const [first, second] = [PAGE.join("\n"), [...PAGE, "<footer>Made here</footer>"].join("\n")];
  assert.deepEqual(texts(artifactsOf([block(first), block(second, { message: "b" })])), [[first, second]]);
});

test("its title is enough, however much of it is new", () => {
  const [first, second] = ["<title>A</title>\n<p>one two</p>", "<title>A</title>\n<main>all new</main>\n<i>words</i>\n<b>more</b>"];
  assert.deepEqual(texts(artifactsOf([block(first), block(second)])), [[first, second]]);
});

test("another title is another page, unless most of it is the same", () => {
  const other = PAGE.map((line) => line.replace("Clock", "Watch"));
  assert.equal(artifactsOf([block(PAGE.join("\n")), block(other.join("\n"))]).length, 1);
  const another = ["<title>Dice</title>", "<h1>It is</h1>", "<button>Roll</button>", "<output></output>"].join("\n");
  assert.equal(artifactsOf([block(PAGE.join("\n")), block(another)]).length, 2);
});

test("a part that is shown to be changed is no version of the whole", () => {
  const whole = Array.from({ length: 20 }, (_, n) => `line number ${n}`).join("\n");
  const found = artifactsOf([block(whole), block("line number 3\nline number 4"), block(`${whole}\nend`)]);
  assert.deepEqual(texts(found).map((some) => some.length), [2, 1]);
});

test("another language is something else, in whatever case it is written", () => {
  const blocks = [block("one two\nthree four", { language: "Python" }), block("one two\nthree four", { language: "js" })];
  assert.equal(artifactsOf(blocks).length, 2);
  assert.equal(artifactsOf([blocks[0], { ...blocks[0], language: "python" }]).length, 1);
});

test("what is being written goes on with what it begins like", () => {
  const lines = Array.from({ length: 30 }, (_, n) => `line number ${n}`);
  const growing = (count) => block(lines.slice(0, count).join("\n"), { isWhole: false });
  const whole = block(lines.join("\n"));
  assert.equal(artifactsOf([whole, growing(2)]).length, 2, "two lines say nothing yet");
  assert.equal(artifactsOf([whole, growing(4)]).length, 1);
  assert.equal(artifactsOf([whole, block("all new\nwords here\nand there", { isWhole: false })]).length, 2);
});

test("nothing and empty blocks are no trouble", () => {
  assert.deepEqual(artifactsOf([]), []);
  assert.equal(artifactsOf([block(""), block("")]).length, 2);
});

test("a block says what it is called", () => {
  assert.equal(titleIn(block(PAGE.join("\n"))), "Clock");
  assert.equal(titleIn({ language: "SVG", text: "<svg><title> Sun </title></svg>" }), "Sun");
  assert.equal(titleIn({ language: "md", text: "x\n# Plan\ny" }), "Plan");
  assert.equal(titleIn({ language: "python", text: "# Plan\n" }), "");
  assert.equal(titleIn({ language: "constructor", text: "x" }), "");
});
