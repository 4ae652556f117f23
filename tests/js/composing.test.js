import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { isComposing } from "../../static/js/dom.js";
import { renameIn } from "../../static/js/rename.js";

const SCRIPTS = new URL("../../static/js/", import.meta.url);
const COMPOSING = [{ isComposing: true, keyCode: 13 }, { isComposing: false, keyCode: 229 }];
const PLAIN = { isComposing: false, keyCode: 13 };

/** The field of a title, and what becomes of it. */
function renaming() {
  const field = Object.assign(new EventTarget(), {
    value: "",
    setAttribute(name, value) {
      if (name === "value") this.value = value;
    },
    append() {},
    select() {},
  });
  globalThis.document = { createElement: () => field };
  const ends = [];
  renameIn(/** @type {any} */ ({ replaceChildren() {} }), "before").then((title) => ends.push(title));
  const press = async (key, more) => {
    field.dispatchEvent(Object.assign(new Event("keydown"), { key, ...more }));
    await Promise.resolve();
    return [...ends];
  };
  return { field, press };
}

test("keys of an input method are known in Safari, too", () => {
  for (const event of COMPOSING) assert.equal(isComposing(event), true);
  assert.equal(isComposing(PLAIN), false);
});

test("a title is renamed by the Enter behind the one that ends composing", async () => {
  const { field, press } = renaming();
  field.value = "契約";
  for (const event of COMPOSING) for (const key of ["Enter", "Escape"]) assert.deepEqual(await press(key, event), []);
  assert.deepEqual(await press("Enter", PLAIN), ["契約"]);
});

test("nobody asks the event alone, which says nothing in Safari", () => {
  const asking = readdirSync(SCRIPTS, { encoding: "utf8" })
    .filter((name) => name.endsWith(".js"))
    .filter((name) => /\.isComposing\b(?! \|\| event\.keyCode === 229)/.test(readFileSync(new URL(name, SCRIPTS), "utf8")));
  assert.deepEqual(asking, []);
});
