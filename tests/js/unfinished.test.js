import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../static/js/markdown.js";
import { asItWillLook } from "../../static/js/unfinished.js";

test("what means nothing yet waits", () => {
  for (const [tail, shown] of [
    ["Text\n-", "Text\n"], ["Text\n--", "Text\n"], ["Text\n===", "Text\n"], ["#", ""], ["Text\n``", "Text\n"],
    ["- a\n  -", "- a\n"], ["Text", "Text"], ["a - b", "a - b"], ["42", "42"], ["Text\n- a", "Text\n- a"],
  ]) {
    assert.equal(asItWillLook(tail), shown, tail);
  }
});

test("a table is a table from its first line on", () => {
  const steps = ["| a |", "| a | b", "| a | b |", "| a | b |\n", "| a | b |\n|", "| a | b |\n|--", "| a | b |\n|---|:-"];
  for (const step of steps) assert.match(toHtml(asItWillLook(step)), /^<table>/, step);
  assert.equal(asItWillLook("| a | b |\n|---|---|\n| 1"), "| a | b |\n|---|---|\n| 1");
});

test("half a link and half of what is strong are shown as what they will be", () => {
  assert.equal(asItWillLook("see [the paper](https://arx"), "see the paper");
  assert.equal(asItWillLook("this is **very imp"), "this is **very imp**");
  assert.equal(asItWillLook("2 ** 3 and a ** b"), "2 ** 3 and a ** b");
  assert.equal(asItWillLook("**done** and more"), "**done** and more");
});

test("a whole text is left as it is", () => {
  const whole = "# Title\n\nText **strong** [link](https://example.com).\n\n| a |\n|---|\n| 1 |\n\n- x\n";
  assert.equal(asItWillLook(whole), whole);
});
