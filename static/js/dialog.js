// @ts-check
/** Questions that have to be answered. Native <dialog>: it traps the focus and gives it back. */

import { find, setText } from "./dom.js";

/**
 * Those that are asked. A dialog is closed before its "close" comes, and what is pressed in between may ask
 * again: that question would hear the answer to the one before.
 * @type {Map<HTMLDialogElement, Promise<string>>}
 */
const asked = new Map();

/**
 * Ask before something that cannot be undone.
 * @param {{title: string, text: string, action: string}} question
 * @returns {Promise<boolean>}
 */
export async function confirmed({ title, text, action }) {
  const dialog = find(document, "#confirm");
  const choice = await choiceOf(dialog, () => {
    setText(find(dialog, "h2"), title);
    setText(find(dialog, "p"), text);
    setText(find(dialog, "[data-confirm]"), action);
  });
  return choice === "yes";
}

/**
 * Show a dialog; what the button says that closes it.
 * @param {HTMLDialogElement} dialog
 * @param {() => void} fill called before it is shown
 * @returns {Promise<string>} empty when it was left; who asks what is being asked hears the same
 */
export async function choiceOf(dialog, fill = () => {}) {
  while (asked.has(dialog) && !dialog.open) await asked.get(dialog);
  fill();
  const choice = shown(dialog);
  asked.set(dialog, choice);
  await choice;
  asked.delete(dialog);
  return choice;
}

/** @param {HTMLDialogElement} dialog @returns {Promise<string>} */
function shown(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
  });
}
