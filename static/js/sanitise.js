// @ts-check
/** The only place where HTML becomes nodes: DOMPurify has the last word on whatever a library wrote. */

import "#vendor/purify.js";

const { DOMPurify } = /** @type {any} */ (globalThis); // its small build is a script, no module

const ALLOWED = {
  RETURN_DOM_FRAGMENT: true,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_TAGS: (
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th" +
    " thead tr ul #text"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "start"],
};

/**
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function sanitised(html) {
  if (!html) return document.createDocumentFragment();
  return DOMPurify.sanitize(html, ALLOWED);
}
