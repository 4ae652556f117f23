// @ts-check
/** Names that can be put behind `tag:` and `folder:` in a search. Pure functions. */

import { matches } from "./word-search.js";

/**
 * @typedef {{filter: "tag" | "folder", query: string, from: number, to: number}} NameAt a half-written one,
 *   and where its name begins and ends in the text
 */

const HALF_WRITTEN = /(?:^|\s)(tag|folder):("[^"]*|[^\s"]*)$/i;
const MAX_NAMES = 6;

/**
 * @param {string} text
 * @param {number} caret
 * @returns {NameAt | null}
 */
export function nameAt(text, caret) {
  const found = text.slice(0, caret).match(HALF_WRITTEN);
  if (!found || /^[^\s"]/.test(text.slice(caret))) return null; // in the middle of a word
  const [, filter, name] = found;
  return { filter: /** @type {"tag" | "folder"} */ (filter.toLowerCase()), query: name.replace(/^"/, ""), from: caret - name.length, to: caret };
}

/**
 * Those that fit, and not the one that is there already.
 * @param {string[]} names
 * @param {string} query
 */
export function namesFor(names, query) {
  const fits = matches(query.trim(), names);
  const isWritten = (/** @type {string} */ name) => name.toLowerCase() === query.trim().toLowerCase();
  return names.filter((name, index) => (fits[index] || !query.trim()) && !isWritten(name)).slice(0, MAX_NAMES);
}

/**
 * The text with the name, in quotes where it has spaces; the caret comes behind it.
 * @param {string} text
 * @param {NameAt} at
 * @param {string} name
 */
export function withName(text, { from, to }, name) {
  const plain = name.replaceAll('"', " ");
  const written = /[\s:]/.test(plain) ? `"${plain}"` : plain;
  const before = `${text.slice(0, from)}${written} `;
  return { text: before + text.slice(to).replace(/^"?\s*/, ""), caret: before.length };
}
