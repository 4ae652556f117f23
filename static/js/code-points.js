// @ts-check
/** Offsets on the wire count Unicode code points; JavaScript strings count UTF-16 units. */

const SURROGATE_PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;

/** @param {string} text */
export function countCodePoints(text) {
  return text.length - (text.match(SURROGATE_PAIRS)?.length ?? 0);
}

/**
 * The first `count` code points of `text`.
 * @param {string} text
 * @param {number} count
 */
export function takeCodePoints(text, count) {
  if (count <= 0) return "";
  if (text.length <= count) return text;
  let index = 0;
  for (let seen = 0; seen < count && index < text.length; seen += 1) {
    index += /** @type {number} */ (text.codePointAt(index)) > 0xffff ? 2 : 1;
  }
  return text.slice(0, index);
}

/**
 * What follows the first `count` code points of `text`.
 * @param {string} text
 * @param {number} count
 */
export function dropCodePoints(text, count) {
  return text.slice(takeCodePoints(text, count).length);
}
