// @ts-check
/** The export dialog of one chat: a file, or the page that is printed. */

import { download, find } from "./dom.js";

const dialog = find(document, "#export-dialog");
const form = find(dialog, "form");
let conversation = "";

form.addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  dialog.close();
  const format = form.elements.format.value;
  if (format === "print") open(`/c/${conversation}/print`, "_blank", "noopener");
  else download(exportUrl(conversation, format));
});
find(form, "[data-close]").addEventListener("click", () => dialog.close());

/** @param {string} id of the conversation */
export function openExportDialog(id) {
  conversation = id;
  dialog.showModal();
}

/**
 * @param {string} id
 * @param {string} format
 */
function exportUrl(id, format) {
  const path = `/api/conversations/${id}/export`;
  return format === "json" ? path : `${path}?format=markdown${format.endsWith("all") ? "&branches=all" : ""}`;
}
