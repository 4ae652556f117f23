// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { madeIn } from "../../static/js/made-picture.js";

const PICTURE = "01a226a4-8e67-77ae-a9f3-58a359fd9006";
/** @param {any} value */
const told = (value) => madeIn({ content: typeof value === "string" ? value : JSON.stringify(value), is_error: false });

test("a result tells of a picture, its prompt and its sides", () => {
  const value = { picture: PICTURE, name: "fox.png", prompt: "A fox", width: 1536, height: 1024 };
  assert.deepEqual(told(value), value);
  assert.equal(madeIn({ content: JSON.stringify(value), is_error: true }), null);
  assert.equal(madeIn(null), null);
});

test("what anybody may have written leads nowhere else", () => {
  for (const picture of ["../../settings/export", `${PICTURE}/content`, "", 7, null, [PICTURE, PICTURE], { a: 1 }]) {
    assert.equal(told({ picture, name: "x", prompt: "A fox" }), null, String(picture));
  }
  for (const content of ["no JSON", "null", "7", "[]", JSON.stringify({ picture: PICTURE })]) assert.equal(told(content), null, content);
});

test("sides that make no sense are those of a square", () => {
  for (const [width, height] of [[0, 5], ["9", 9], [-1, 2], [1.5, 2], [undefined, undefined]]) {
    const made = told({ picture: PICTURE, prompt: "A fox", width, height });
    assert.deepEqual([made?.width, made?.height, made?.name], [1024, 1024, ""]);
  }
});
