// @ts-check
/**
 * How far a budget is used, in words. Pure functions.
 *
 * @typedef {{name: "tokens_per_day" | "tokens_per_month" | "cost_per_month", share: number,
 *   resets_at: string}} Budget of GET /api/usage, and of the page
 */

import { LOCALE, gettext } from "./i18n.js";
import { percentReached } from "./words.js";

const WARN_AT = 0.8;
const when = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "long", hour: "numeric", minute: "2-digit" });

/** @type {Record<string, [string, string]>} name → while some of it is left, when it is used up */
const LINES = {
  tokens_per_day: [
    gettext("%(share)s of your tokens for today are used."),
    gettext("Your tokens for today are used up. There are new ones on %(when)s."),
  ],
  tokens_per_month: [
    gettext("%(share)s of your tokens for this month are used."),
    gettext("Your tokens for this month are used up. There are new ones on %(when)s."),
  ],
  cost_per_month: [
    gettext("%(share)s of your budget for this month is used."),
    gettext("Your budget for this month is used up. There is more on %(when)s."),
  ],
};

/**
 * The one to tell of: what is used up first, then what is nearest to it.
 * @param {Budget[]} budgets
 * @param {(budget: Budget) => boolean} isDismissed
 * @returns {Budget | null}
 */
export function mostPressing(budgets, isDismissed) {
  const told = budgets.filter((one) => one.name in LINES && one.share >= WARN_AT && !isDismissed(one));
  return told.sort((one, other) => other.share - one.share)[0] ?? null;
}

/** @param {Budget} budget */
export function isSpent({ share }) {
  return share >= 1;
}

/** @param {Budget} budget @returns {string} */
export function budgetLine(budget) {
  const [some, none] = LINES[budget.name];
  const text = isSpent(budget) ? none : some;
  const share = percentReached(budget.share);
  return text.replace("%(share)s", share).replace("%(when)s", when.format(new Date(budget.resets_at)));
}

/**
 * What a dismissal is remembered by: it is for this day (UTC, as budgets are), and a budget that is
 * used up since is told again.
 * @param {Budget} budget
 * @param {Date} [now]
 */
export function dismissal(budget, now = new Date()) {
  return `${now.toISOString().slice(0, 10)} ${isSpent(budget) ? "spent" : "low"}`;
}
