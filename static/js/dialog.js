// @ts-check
/** Questions that have to be answered. Native <dialog>: it traps the focus and gives it back. */

import { find, setText } from "./dom.js";

/**
 * Ask before something that cannot be undone.
 * @param {{title: string, text: string, action: string}} question
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, action }) {
  const dialog = find(document, "#confirm");
  setText(find(dialog, "h2"), title);
  setText(find(dialog, "p"), text);
  setText(find(dialog, "[data-confirm]"), action);
  return choiceOf(dialog).then((choice) => choice === "yes");
}

/**
 * Show a dialog; what the button says that closes it.
 * @param {HTMLDialogElement} dialog
 * @returns {Promise<string>} empty when it was left
 */
export function choiceOf(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
  });
}
