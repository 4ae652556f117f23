// @ts-check
/**
 * Colours for code that grows, in parts of some lines each: a part ends where no comment, string or the
 * like is open, so that it can be coloured apart from all that follows, and is coloured once. Where it
 * ends depends on the text alone and not on how it arrived. Makes HTML, for sanitise.js.
 */

import { Lazy } from "./lazy.js";

/** @type {Lazy<any>} highlight.js */
export const highlighter = new Lazy(async () => (await import("#vendor/highlight.js")).default);

const MAX_CHARS = 50_000;
const MIN_LINES = 32;
const STEP_LINES = 8;
const MAX_LINES = 160;

/** @typedef {{numChars: number, html: string | null}} Part `html` null: plain text */

/**
 * The first part of `text`, if it is whole.
 * @param {any} library null for plain text
 * @param {string} language
 * @param {string} text
 * @returns {Part | null}
 */
export function firstPart(library, language, text) {
  let end = endOfLines(text, 0, MIN_LINES);
  for (let lines = MIN_LINES; end > 0 && lines <= MAX_LINES; lines += STEP_LINES) {
    const part = coloured(library, language, text.slice(0, end));
    if (part.isAtRoot) return { numChars: end, html: part.html };
    end = endOfLines(text, end, STEP_LINES);
  }
  return end > 0 ? { numChars: end, html: null } : null; // a very long comment: it is not worth it
}

/**
 * HTML of `text`; null where there are no colours.
 * @param {any} library
 * @param {string} language
 * @param {string} text
 * @returns {string | null}
 */
export function colouredEnd(library, language, text) {
  return coloured(library, language, text).html;
}

/**
 * Whether code of this length is coloured at all.
 * @param {number} numChars
 */
export function isColourable(numChars) {
  return numChars <= MAX_CHARS;
}

/**
 * @param {any} library
 * @param {string} language
 * @param {string} text
 * @returns {{html: string | null, isAtRoot: boolean}}
 */
function coloured(library, language, text) {
  if (!library?.getLanguage(language)) return { html: null, isAtRoot: true };
  const { value, _top } = library.highlight(text, { language, ignoreIllegals: true });
  return { html: value, isAtRoot: !_top?.parent }; // the grammar stands where it stood at the start
}

/**
 * The index behind `count` lines from `start` on; -1 if there are fewer.
 * @param {string} text
 * @param {number} start
 * @param {number} count
 */
function endOfLines(text, start, count) {
  let end = start;
  for (let line = 0; line < count; line += 1) {
    end = text.indexOf("\n", end) + 1;
    if (end === 0) return -1;
  }
  return end;
}
