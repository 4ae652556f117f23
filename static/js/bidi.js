// @ts-check
/** Makes hidden direction marks visible, for they let code and addresses look like others. */

import { element } from "./dom.js";
import { gettext } from "./i18n.js";
import { BIDI_IN_CODE, BIDI_IN_PROSE, codePointName } from "./text-safety.js";

/**
 * @param {DocumentFragment} fragment
 * @param {boolean} [isCode] all of it
 */
export function showBidi(fragment, isCode = false) {
  if (!fragment.textContent?.match(BIDI_IN_CODE)) return;
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const texts = [];
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
  for (const text of texts) {
    const isStrict = isCode || text.parentElement?.closest("code, a");
    const pattern = isStrict ? BIDI_IN_CODE : BIDI_IN_PROSE;
    const pieces = text.data.split(new RegExp(`(${pattern.source})`));
    if (pieces.length > 1) text.replaceWith(...pieces.map((piece, i) => (i % 2 ? mark(piece) : piece)));
  }
}

/** @param {string} character */
function mark(character) {
  const name = codePointName(character);
  return element("span", { class: "bidi-mark", title: gettext("Hidden direction mark"), "data-name": name });
}
