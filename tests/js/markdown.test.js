import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { codeBlocks, toHtml } from "../../static/js/markdown.js";
import { codePointName, hostOf, namesAnotherHost, withoutTags, withUnseenEscaped } from "../../static/js/text-safety.js";

const ATTACKS = JSON.parse(readFileSync(new URL("../attacks.json", import.meta.url), "utf8"));

// The first barrier only: DOMPurify needs a DOM and is tested in tests/browser/test_hostile_text.py.
for (const attack of ATTACKS) {
  test(`no tag or address of the text survives: ${attack.slice(0, 50)}`, () => {
    const html = toHtml(attack);
    const tags = [...html.matchAll(/<([a-z0-9]+)([^>]*)>/gi)];
    for (const [, name, attributes] of tags) {
      assert.ok(!/^(script|img|svg|iframe|form|input|style|base|meta|object|math|video)$/i.test(name), html);
      assert.ok(!/\son\w+\s*=/i.test(attributes.replace(/"[^"]*"/g, '""')), html);
      assert.ok(!/(href|src)="\s*(javascript|vbscript|data|file):/i.test(attributes), html);
    }
  });
}

test("an image becomes what foreign.js turns into a button", () => {
  assert.match(toHtml("![a cat](https://evil.example/?q=1)"),
    /<a class="image-link" href="https:\/\/evil\.example\/\?q=1">a cat<\/a>/);
});

test("only addresses with a protocol become links by themselves", () => {
  assert.doesNotMatch(toHtml("see example.com and me@example.com"), /<a/);
  assert.match(toHtml("see https://example.com/x"), /<a href="https:\/\/example.com\/x"/);
});

test("table cells are aligned without style attributes", () => {
  const html = toHtml("| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |\n");
  assert.doesNotMatch(html, /style/);
  assert.match(html, /<td class="align-right">3/);
});

test("invisible tag characters are cut out and flags survive", () => {
  const hidden = [..."evil"].map((c) => String.fromCodePoint(0xe0000 + c.codePointAt(0))).join("");
  const scotland = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";
  assert.equal(withoutTags(`a${hidden}b ${scotland} 👩‍👩‍👧 🇩🇪 क्‍ष`), `ab ${scotland} 👩‍👩‍👧 🇩🇪 क्‍ष`);
});

test("hosts show what is registered, not what they look like", () => {
  assert.equal(hostOf("https://раураl.com/login"), "xn--l-7sba6dbr.com");
  assert.equal(hostOf("https://user@evil.example:8080/"), "evil.example:8080");
  assert.equal(hostOf("/c/1"), null);
  assert.equal(hostOf("javascript:alert(1)"), null);
});

test("words that look like another address are noticed", () => {
  assert.equal(namesAnotherHost("https://my-bank.example/login", "evil.example"), true);
  assert.equal(namesAnotherHost("my-bank.example", "my-bank.example.evil.test"), true);
  assert.equal(namesAnotherHost("evil.example, not bank.example", "evil.example"), true);
  assert.equal(namesAnotherHost("раураl.com", "paypal.com"), true);
  assert.equal(namesAnotherHost("www.bank.example", "bank.example:443"), false);
  assert.equal(namesAnotherHost("the paper", "arxiv.org"), false);
});

test("control characters have names", () => {
  assert.equal(codePointName("\u202e"), "U+202E");
});

test("what a tool is given shows what nobody would see", () => {
  assert.equal(withUnseenEscaped('{"to": "\u202ea\u200bb"}'), '{"to": "\\u202ea\\u200bb"}');
  assert.equal(withUnseenEscaped("\u{E0041}"), "\\udb40\\udc41");
  const fine = '{"text": "می\u200cخواهم 👩\u200d🚀 ä\\n"}';
  assert.equal(withUnseenEscaped(fine), fine);
});

test("the blocks of code of a text, and whether they may grow", () => {
  const found = (text) => codeBlocks(text).map((block) => [block.language, block.text, block.isClosed]);
  assert.deepEqual(found("a\n```py\none\n\ntwo\n```\nb\n~~~\nthree\n~~~\n"), [["py", "one\n\ntwo\n", true], ["", "three\n", true]]);
  assert.deepEqual(found("- x\n\n  ```js\n  one\n  ```\n"), [["js", "one\n", true]]);
  assert.deepEqual(found("> ```html title\n> <p>\n> ```"), [["html", "<p>\n", true]]);
  for (const growing of ["```py\none", "```py\none\n", "```py\none\n\n", "```py\n", "```py", "```py\none\n``"]) {
    assert.equal(codeBlocks(growing).at(-1)?.isClosed, false, growing);
  }
  assert.equal(codeBlocks("```py\n```")[0].isClosed, true);
  assert.deepEqual(codeBlocks("    indented\n\n`inline`"), []);
});
