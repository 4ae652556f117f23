// @ts-check
/** Renaming in place: an input where the title was. */

import { element, isComposing } from "./dom.js";
import { gettext } from "./i18n.js";

/**
 * Let the reader change a title. Enter and leaving the field save, Escape does not.
 * @param {HTMLElement} row what the input replaces the content of; whoever made it restores it
 * @param {string} title
 * @returns {Promise<string | null>} the new title, or null if it stays
 */
export function renameIn(row, title) {
  const attributes = { "aria-label": gettext("Title"), maxlength: "200", value: title };
  const input = /** @type {HTMLInputElement} */ (element("input", attributes));
  row.replaceChildren(input);
  input.select();
  return new Promise((resolve) => {
    const end = (/** @type {boolean} */ isSaved) => {
      const typed = input.value.trim();
      resolve(isSaved && typed && typed !== title ? typed : null);
    };
    input.addEventListener("blur", () => end(true));
    input.addEventListener("keydown", (event) => {
      event.stopPropagation(); // Escape leaves the field, it does not stop an answer
      if (isComposing(event)) return;
      if (event.key === "Escape") end(false);
      if (event.key === "Enter") end(true);
    });
  });
}
