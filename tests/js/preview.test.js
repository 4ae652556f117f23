import assert from "node:assert/strict";
import { test } from "node:test";

import { documentOf, faultIn } from "../../static/js/preview.js";

test("a page keeps its document type, and what watches it comes before all else of it", () => {
  const shown = documentOf("html", "\n<!DOCTYPE html>\n<html><script>first()</script></html>");
  assert.match(shown, /^<!DOCTYPE html><script>/);
  assert.ok(shown.indexOf("securitypolicyviolation") < shown.indexOf("first()"));
  assert.equal(shown.match(/<!doctype/gi)?.length, 1);
});

test("a part of a page is shown in standards mode", () => {
  assert.match(documentOf("html", "<p>One</p>"), /^<!doctype html><script>[^]*<p>One<\/p>$/);
});

test("a picture has a page around it", () => {
  const shown = documentOf("svg", '<!DOCTYPE svg PUBLIC "x"><svg></svg>');
  assert.match(shown, /^<!doctype html>/);
  assert.ok(shown.endsWith("<svg></svg>"));
});

test("a fault stands on a line of the text, where its script is known", () => {
  const text = "<p>\n<script>\n  missing();\n</script>\n<p>";
  const script = "\n  missing();\n";
  assert.deepEqual(faultIn(text, { message: "no", line: 2, script }), { message: "no", line: 3 });
  for (const said of [{ line: 2 }, { line: 2, script: "" }, { line: 2, script: "other" }, { line: "2", script }, { line: 1e9, script }, { line: -5, script }, { line: NaN, script }]) {
    assert.equal(faultIn(text, { message: "no", ...said }).line, 0, JSON.stringify(said));
  }
  assert.equal(faultIn(text, { message: "x".repeat(1e6), line: 1 }).message.length, 300);
  assert.equal(faultIn(text, {}).message, "undefined");
});
