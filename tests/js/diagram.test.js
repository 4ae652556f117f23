import assert from "node:assert/strict";
import { test } from "node:test";

import { pictureOf } from "../../static/js/diagram-renderer.js";

const drawn = { type: "drawn", id: 1, svg: "<svg/>", width: 100, height: 50 };

test("a picture is taken", () => {
  assert.deepEqual(pictureOf(drawn), { svg: "<svg/>", width: 100, height: 50 });
});

test("whatever else the frame says is none", () => {
  for (const wrong of [
    null, {}, { ...drawn, type: "x" }, { ...drawn, svg: 5 }, { ...drawn, svg: "<html>" },
    { ...drawn, width: Infinity }, { ...drawn, width: NaN }, { ...drawn, height: -1 }, { ...drawn, height: 1e9 },
    { ...drawn, width: "100" }, { ...drawn, svg: `<svg>${"x".repeat(3_000_000)}` },
  ]) {
    assert.throws(() => pictureOf(wrong), /too large/);
  }
  assert.throws(() => pictureOf({ type: "failed", message: "Parse error" }), /Parse error/);
});
