import assert from "node:assert/strict";
import { test } from "node:test";

import { wavOf } from "../../static/js/recording.js";

test("a WAV file has a head that says what is in it", async () => {
  const sound = wavOf(Float32Array.of(0, 0.5, -1, 1, 7, -7), 16_000);
  assert.equal(sound.type, "audio/wav");
  const view = new DataView(await sound.arrayBuffer());
  const word = (at) => String.fromCharCode(...new Uint8Array(view.buffer, at, 4));
  assert.deepEqual([word(0), word(8), word(12), word(36)], ["RIFF", "WAVE", "fmt ", "data"]);
  assert.equal(view.getUint32(4, true), view.byteLength - 8);
  assert.deepEqual([view.getUint16(20, true), view.getUint16(22, true), view.getUint16(34, true)], [1, 1, 16]);
  assert.deepEqual([view.getUint32(24, true), view.getUint32(28, true)], [16_000, 32_000]);
  assert.equal(view.getUint32(40, true), 12);
  const samples = Array.from({ length: 6 }, (_, index) => view.getInt16(44 + 2 * index, true));
  assert.deepEqual(samples, [0, 16_384, -32_767, 32_767, 32_767, -32_767]);
});
