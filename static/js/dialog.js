// @ts-check
/** The one confirmation dialog. Native <dialog>: it traps the focus and gives it back. */

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
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
