import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const STATIC = new URL("../../static/js/", import.meta.url);
const SPRITE = readFileSync(new URL("../../templates/_icons.svg", import.meta.url), "utf8");
const KNOWN = new Set([...SPRITE.matchAll(/id="icon-([a-z0-9-]+)"/g)].map(([, name]) => name));
/** Calls that name one; what they pass on is seen in tests/browser/test_every_page.py. */
const NAMED = /\b(?:icon|aside)\("([a-z0-9-]+)"|\bbarButton\("[a-z-]+", "([a-z0-9-]+)"/g;

test("every icon that a module names is in the sprite of the page", () => {
  const missing = [];
  let count = 0;
  for (const file of readdirSync(STATIC).filter((name) => name.endsWith(".js"))) {
    for (const [, one, other] of readFileSync(new URL(file, STATIC), "utf8").matchAll(NAMED)) {
      count += 1;
      if (!KNOWN.has(one ?? other)) missing.push(`${file}: ${one ?? other}`);
    }
  }
  assert.ok(count > 40, String(count));
  assert.deepEqual(missing, []);
});
