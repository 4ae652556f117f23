// @ts-check
/** Marks what was looked for in the message that the search has led to. */

import { folded } from "./word-search.js";

const FILTER = /(?:^|\s)(?:-\S*|(?:tag|folder|pinned|archived|before|after):(?:"[^"]*"?|\S*))/gi;
const PART_OF_WORD = /[\p{L}\p{N}\p{M}]/u;
/** Written without spaces: there a word begins anywhere. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const MAX_PLACES = 500;

/**
 * The words of a query; what it does without, and its filters, are none.
 * @param {string} query
 */
export function wordsOf(query) {
  const words = folded(query.replace(FILTER, " ").replaceAll('"', " ")).split(/\s+/);
  return [...new Set(words.filter((word) => PART_OF_WORD.test(word)))];
}

/**
 * Where words stand in a text: each that begins with one of them.
 * @param {string} text
 * @param {string[]} words folded
 * @returns {[number, number][]} from, and before which place
 */
export function placesOf(text, words) {
  /** Folding may make a sign longer or shorter. @type {number[]} */
  const places = [];
  let own = "";
  for (const { segment, index } of signsOf(text)) {
    const small = folded(segment);
    own += small;
    for (let n = 0; n < small.length; n++) places.push(index);
  }
  places.push(text.length);
  /** @type {[number, number][]} */
  const found = [];
  for (const word of words) {
    for (let at = own.indexOf(word); at >= 0 && found.length < MAX_PLACES; at = own.indexOf(word, at + 1)) {
      let end = at + word.length;
      if (!UNSPACED.test(word)) {
        if (at && PART_OF_WORD.test(own[at - 1])) continue;
        while (end < own.length && PART_OF_WORD.test(own[end]) && !UNSPACED.test(own[end])) end++;
      }
      found.push([places[at], places[end]]);
    }
  }
  return found.sort(([a], [b]) => a - b);
}

/** @param {string} text */
function* signsOf(text) {
  let index = 0;
  for (const segment of text) {
    yield { segment, index };
    index += segment.length;
  }
}

/**
 * Mark the words in an element, and nowhere else any more. They are no part of the page: copying and
 * drawing anew know nothing of it.
 * @param {HTMLElement | null} root
 * @param {string} query
 */
export function markWords(root, query) {
  const { highlights } = CSS;
  if (!highlights) return; // older browsers show the message, and mark nothing in it
  highlights.delete("found");
  const words = wordsOf(query);
  if (!root || !words.length) return;
  const ranges = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const [from, to] of placesOf(/** @type {Text} */ (node).data, words)) {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, to);
      ranges.push(range);
    }
  }
  if (ranges.length) highlights.set("found", new Highlight(...ranges));
}
