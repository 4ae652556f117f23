/** SHA-256, against node's own, and the sum of the form of sign-up. */

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";

import { sha256 } from "../../static/js/sha256.js";
import { numZeroBits, worked } from "../../static/js/signup-work.js";

const hex = (words) => [...words].map((word) => word.toString(16).padStart(8, "0")).join("");
const nodes = (bytes) => createHash("sha256").update(bytes).digest("hex");

test("SHA-256 is that of node, at every length around its blocks", () => {
  for (let length = 0; length < 200; length += 1) {
    const bytes = randomBytes(length);
    assert.equal(hex(sha256(bytes)), nodes(bytes), `${length} bytes`);
  }
});

test("zero bits are counted across words", () => {
  for (let number = 0; number < 2000; number += 1) {
    const binary = BigInt(`0x${nodes(`x:${number}`)}`).toString(2);
    assert.equal(numZeroBits("x", String(number)), 256 - binary.length);
  }
});

test("what was worked out has as many zero bits as were asked for", async () => {
  const nonce = await worked("challenge", 12);
  assert.ok(nodes(`challenge:${nonce}`).startsWith("000"));
});
