// @ts-check
/**
 * Pages that show a branch to be read: a shared one, or one to be printed. The server has written
 * the text; it is rendered here, as the chat does it.
 */

import { actOnBlock } from "./block-actions.js";
import { showLocalTimes } from "./local-times.js";
import "./once.js";
import { Prose } from "./prose.js";
import { followTheme } from "./theme.js";

for (const root of document.querySelectorAll("[data-prose]")) {
  const text = root.textContent ?? "";
  root.textContent = "";
  root.removeAttribute("data-prose");
  new Prose(/** @type {HTMLElement} */ (root)).update(text, true);
}

showLocalTimes(document);
document.addEventListener("click", ({ target }) => actOnBlock(/** @type {Element} */ (target)));
followTheme();

document.querySelector("[data-print-now]")?.addEventListener("click", () => print());
if (document.body.dataset.print !== undefined) {
  // With the fonts in it, and after highlighting has had its chance.
  document.fonts.ready.then(() => setTimeout(() => print(), 300));
}
