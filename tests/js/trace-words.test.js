// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { duration, money, rowsOf, ticksOf, tokenShares } from "../../static/js/trace-words.js";

const span = (kind, start_ms, end_ms, facts = {}) => ({ kind, start_ms, end_ms, facts });

test("spans stand on one axis, in plain words", () => {
  const rows = rowsOf(
    [
      span("queued", 0, 100, { turn: 0, position: 3 }),
      span("prefill", 100, 500, { turn: 0, tokens: 8900, cached: 5100 }),
      span("decode", 500, 2000, { turn: 0, tokens: 101, engine_ms: 9 }),
    ],
    2000,
  );
  assert.deepEqual(
    rows.map(({ name, time, about }) => [name, time, about]),
    [
      ["Queued", "100 ms", "3 in line"],
      ["Read", "400 ms", "8,900 tokens, 5,100 from the cache"],
      ["Written", "1.5 s", "101 tokens, 15 ms each"],
    ],
  );
  assert.deepEqual(rows.map(({ start }) => start), [0, 0.05, 0.25]);
  assert.ok(Math.abs(rows.reduce((sum, { size }) => sum + size, 0) - 1) < 1e-9);
});

test("a kind of span that is new here is shown by its name and its facts", () => {
  const [row] = rowsOf([span("fact_check", 0, 5, { turn: 0, num_sources: 4 })], 10);
  assert.equal(row.name, "Fact check");
  assert.equal(row.about, "num sources 4");
});

test("a tool has its own name, and says when it failed", () => {
  const [row] = rowsOf([span("tool", 0, 5, { name: "calculator", is_error: true })], 10);
  assert.deepEqual([row.name, row.about], ["Calculator", "gave an error"]);
  const facts = { name: "create_image", is_error: false, model: "painter", size: "1024x1024", cost: { amount: "0.04", currency: "EUR" } };
  const [drawn] = rowsOf([span("tool", 0, 5, facts)], 10);
  assert.deepEqual([drawn.name, drawn.about], ["Picture", "painter, 1024x1024, €0.04"]);
});

test("an answer of no time at all divides by nothing", () => {
  const [row] = rowsOf([span("saved", 0, 0)], 0);
  assert.ok(Number.isFinite(row.start) && Number.isFinite(row.size));
  assert.deepEqual(ticksOf(0), []);
});

test("ticks are round and few, whatever the length", () => {
  for (const total of [0.4, 3, 17, 99, 100, 640, 1999, 2001, 61_000, 3_600_000]) {
    const ticks = ticksOf(total);
    assert.ok(ticks.length >= 2 && ticks.length <= 5, `${total}: ${ticks.length}`);
    assert.equal(ticks[0].share, 0);
    assert.ok(ticks.every(({ share }) => share < 1));
  }
});

test("token shares make a whole", () => {
  const shares = tokenShares({ prompt_tokens: 96, cached_tokens: 64, completion_tokens: 412 });
  assert.deepEqual(shares.map(({ tokens }) => tokens), [64, 32, 412]);
  assert.ok(Math.abs(shares.reduce((sum, { share }) => sum + share, 0) - 1) < 1e-9);
});

test("durations and money have units, and small amounts keep their figures", () => {
  assert.equal(duration(0.2), "< 1 ms");
  assert.equal(duration(999.9), "1 s");
  assert.match(money({ amount: "0.00123456", currency: "EUR" }), /€0\.0012/);
  assert.equal(money({ amount: "3.5", currency: "beans" }), "3.5 beans");
});

test("what moderation found is said in words", () => {
  const row = (/** @type {Record<string, any>} */ facts) =>
    rowsOf([{ kind: "moderation", start_ms: 0, end_ms: 4, facts }], 10)[0].about;
  assert.equal(row({ action: "allow", categories: [], has_failed: false }), "nothing was found");
  assert.equal(row({ action: "note", categories: ["hate", "secrets"], has_failed: false }), "noted: hate, secrets");
  assert.equal(row({ action: "block", categories: ["illicit"], has_failed: false }), "stopped: illicit");
  const nobody = "not every classifier could be asked";
  assert.equal(row({ action: "allow", categories: [], has_failed: true }), `nothing was found; ${nobody}`);
  assert.equal(row({ action: "block", categories: [], has_failed: true }), `stopped; ${nobody}`);
  assert.equal(row({ action: "block", categories: ["secrets"], has_failed: true }), `stopped: secrets; ${nobody}`);
});
