// @ts-check
/** How surprising a token was, in bits, in words and in steps for the eye. Pure functions. */

import { LOCALE, gettext } from "./i18n.js";

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
  const share = Math.exp(logprob) * 100;
  if (share >= 99.95) return "100 %";
  if (share < 0.01) return "< 0.01 %";
  const digits = share >= 10 ? 0 : 1;
  if (share < 1) return `${new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 1 }).format(share)} %`;
  return `${decimals(share, digits)} %`;
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
