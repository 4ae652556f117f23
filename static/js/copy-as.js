// @ts-check
/** The text of a message for other places than this one: without markup, or with that of a document. */

import { copyText } from "./dom.js";
import { gettext } from "./i18n.js";
import { toFragment, toHtml } from "./markdown.js";
import { plainText } from "./plain-text.js";
import { sanitised } from "./sanitise.js";

/**
 * @param {string} markdown
 * @returns {string}
 */
export function asPlainText(markdown) {
  return plainText(toFragment(toHtml(markdown)));
}

/**
 * HTML for word processors and mails: without our furniture, formulas as TeX.
 * @param {string} markdown
 * @returns {string}
 */
export function asRichText(markdown) {
  const holder = document.createElement("div");
  holder.append(sanitised(toHtml(markdown)));
  for (const math of holder.querySelectorAll(".math")) {
    const sign = math.matches(".math--display") ? "$$" : "$";
    math.replaceWith(`${sign}${math.textContent}${sign}`);
  }
  for (const classed of holder.querySelectorAll("[class]")) classed.removeAttribute("class");
  return holder.innerHTML;
}

/** @param {string} markdown */
export function copyAsPlainText(markdown) {
  return copyText(asPlainText(markdown));
}

/**
 * Both kinds at once: where it is pasted takes what it understands. Throws where the browser does not allow it.
 * @param {string} markdown
 */
export function copyAsRichText(markdown) {
  const give = (/** @type {ClipboardEvent} */ event) => {
    event.clipboardData?.setData("text/html", asRichText(markdown));
    event.clipboardData?.setData("text/plain", asPlainText(markdown));
    event.preventDefault();
  };
  document.addEventListener("copy", give, { once: true });
  const isCopied = document.execCommand("copy"); // unlike the newer way, it works on plain http hosts as well
  document.removeEventListener("copy", give);
  if (!isCopied) throw new Error(gettext("The browser did not allow copying."));
}
