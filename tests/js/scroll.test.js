import assert from "node:assert/strict";
import { test } from "node:test";

import { jumpShows, keyboardSize, pinnedAfterScroll } from "../../static/js/scroll.js";

const at = (top, height = 2000, view = 800) => ({ top, height, view });

test("scrolling up a little lets go at once, even near the end", () => {
  assert.equal(pinnedAfterScroll(true, at(1200), at(1196)), false);
  assert.equal(pinnedAfterScroll(true, at(1200), at(1198)), true);
});

test("content that grows or shrinks is no scrolling", () => {
  assert.equal(pinnedAfterScroll(true, at(1200), at(1200, 2600)), true);
  assert.equal(pinnedAfterScroll(true, at(1200), at(1100, 1900)), true);
  assert.equal(pinnedAfterScroll(false, at(300), at(300, 2600)), false);
});

test("coming back near the end holds on again", () => {
  assert.equal(pinnedAfterScroll(false, at(1000), at(1100)), false);
  assert.equal(pinnedAfterScroll(false, at(1100), at(1145)), true);
});

test("the jump button appears far from the end, stays for a while, and never while pinned", () => {
  assert.equal(jumpShows(false, false, 150), false);
  assert.equal(jumpShows(false, false, 201), true);
  assert.equal(jumpShows(true, false, 150), true);
  assert.equal(jumpShows(true, false, 59), false);
  assert.equal(jumpShows(true, true, 500), false);
});

test("a keyboard over the page is known, and neither a bar of the browser nor pinching is one", () => {
  assert.equal(keyboardSize({ height: 844, scale: 1 }, 844), 0);
  assert.equal(keyboardSize({ height: 508.4, scale: 1 }, 844), 336);
  assert.equal(keyboardSize({ height: 790, scale: 1 }, 844), 0);
  assert.equal(keyboardSize({ height: 422, scale: 2 }, 844), 0);
  assert.equal(keyboardSize({ height: 254, scale: 2 }, 844), 0);
});
