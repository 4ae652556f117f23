import assert from "node:assert/strict";
import { test } from "node:test";

import { documentOf } from "../../static/js/preview.js";

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
