// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { budgetLine, dismissal, mostPressing } from "../../static/js/budget-words.js";

/** @param {string} name @param {number} share @returns {any} */
const budget = (name, share) => ({ name, share, resets_at: "2026-11-23T00:00:00Z" });
const never = () => false;

test("a budget is told of from 80 % on, the most pressing one first", () => {
  assert.equal(mostPressing([budget("tokens_per_day", 0.79)], never), null);
  assert.equal(mostPressing([budget("tokens_per_day", 0.8)], never)?.name, "tokens_per_day");
  const several = [budget("tokens_per_day", 0.85), budget("cost_per_month", 1.02)];
  assert.equal(mostPressing(several, never)?.name, "cost_per_month");
  assert.equal(mostPressing(several, ({ name }) => name === "cost_per_month")?.name, "tokens_per_day");
  assert.equal(mostPressing([budget("key_tokens_per_day", 1)], never), null); // no matter of a chat's
});

test("the line says how much, and when there is more", () => {
  assert.equal(budgetLine(budget("tokens_per_day", 0.8349)), "83% of your tokens for today are used.");
  assert.match(budgetLine(budget("tokens_per_month", 1)), /^Your tokens for this month are used up\. There are new ones on .*November.*2[23]|2[23].*November/);
  assert.match(budgetLine(budget("cost_per_month", 0.999)), /^99% of your budget for this month is used\./);
});

test("a dismissal is for the day, and not for the time when all is used", () => {
  const today = new Date("2026-11-22T23:59:00Z");
  const low = budget("tokens_per_day", 0.9);
  assert.equal(dismissal(low, today), dismissal(budget("tokens_per_day", 0.95), today));
  assert.notEqual(dismissal(low, today), dismissal(budget("tokens_per_day", 1), today));
  assert.notEqual(dismissal(low, today), dismissal(low, new Date("2026-11-23T00:00:00Z")));
});
