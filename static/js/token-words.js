// @ts-check
/** How surprising a token was, in bits, in words and in steps for the eye. Pure functions. */

import { LOCALE, gettext } from "./i18n.js";
import { percent } from "./words.js";

const tenthsOfPercents = new Intl.NumberFormat(LOCALE, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const fewPercents = new Intl.NumberFormat(LOCALE, { style: "percent", maximumSignificantDigits: 1 });

/** Bits from which on a token is shaded in step 1, 2, 3 and 4. */
const STEPS = [1, 2.5, 4.5, 7];
export const STEP_WORDS = [gettext("expected"), gettext("likely"), gettext("open"), gettext("surprising"), gettext("very surprising")];

/** @param {number | null} logprob natural logarithm */
export function bits(logprob) {
  return logprob === null ? null : Math.max(0, -logprob / Math.LN2);
}

/** @param {number | null} logprob */
export function stepOf(logprob) {
  const surprisal = bits(logprob);
  if (surprisal === null) return null;
  return STEPS.filter((least) => surprisal >= least).length;
}

/**
 * @param {number} value
 * @param {number} digits
 */
function decimals(value, digits) {
  return value.toLocaleString(LOCALE, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** @param {number | null} logprob */
export function chance(logprob) {
  if (logprob === null) return gettext("not known");
  const share = Math.exp(logprob);
  if (share >= 0.9995) return percent(1);
  if (share < 0.0001) return `< ${fewPercents.format(0.0001)}`;
  if (share < 0.01) return fewPercents.format(share);
  return share < 0.1 ? tenthsOfPercents.format(share) : percent(share);
}

/** @param {number | null} logprob */
export function bitsWords(logprob) {
  const surprisal = bits(logprob);
  return surprisal === null ? "" : gettext("%(n)s bits", { n: decimals(surprisal, surprisal < 10 ? 1 : 0) });
}

/**
 * A token as a reader can see it: what has no shape gets a mark.
 * @param {string} text
 */
export function visible(text) {
  if (text === "") return gettext("(part of a character)");
  return text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

/**
 * Text for the page: a line break is seen, and breaks.
 * @param {string} text
 */
export function shown(text) {
  return text.replaceAll("\n", "↵\n");
}
