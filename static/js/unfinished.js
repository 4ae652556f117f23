// @ts-check
/**
 * The end of a text that is still being written, as it will most likely look: signs that mean nothing
 * yet wait for what follows, and the head of a table is one before its second line is there. What is
 * complete is never changed.
 */

/** A line of which there is only the mark: it may become a list, a heading, a fence or a table. */
const ONLY_MARK = /(^|\n)[ \t>]*(?:[-+*=_#>]+|`{1,2}|`{3,}|~+|\|)[ \t]*$/;
const TABLE_HEAD = /(?:^|\n)( {0,3}\|[^\n]*)(\n {0,3}(?:\|[-:| \t]*)?)?$/;
const OPEN_STRONG = /(^|[\s(])(\*\*|__)(?=\S)((?:(?!\2)[^\n`])*)$/;
const OPEN_LINK = /!?\[[^[\]\n]*\]\([^\s)]*$/;

/**
 * @param {string} tail
 * @returns {string}
 */
export function asItWillLook(tail) {
  const known = tail.replace(ONLY_MARK, "$1");
  const table = known.match(TABLE_HEAD);
  if (table && isFirstLine(known, table)) return withTableHead(known, table);
  return known.replace(OPEN_LINK, linkWords).replace(OPEN_STRONG, "$1$2$3$2");
}

/**
 * @param {string} text
 * @param {RegExpMatchArray} match
 */
function isFirstLine(text, match) {
  const before = text.slice(0, /** @type {number} */ (match.index));
  return !/\|[^\n]*$/.test(before); // else it is a row
}

/**
 * @param {string} text
 * @param {RegExpMatchArray} match
 */
function withTableHead(text, [whole, head]) {
  const numCells = Math.max(1, head.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).length);
  return `${text.slice(0, text.length - whole.length)}${whole.startsWith("\n") ? "\n" : ""}${head}\n|${"---|".repeat(numCells)}`;
}

/** @param {string} link of which the address is half */
function linkWords(link) {
  return link.slice(link.indexOf("[") + 1, link.lastIndexOf("]"));
}
