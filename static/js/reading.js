// @ts-check
/**
 * Pages that show a branch to be read: a shared one, or one to be printed. The server has written
 * the text; it is rendered here, as the chat does it.
 */

import { actOnBlock } from "./block-actions.js";
import { isPlainClick } from "./dom.js";
import { showLarge } from "./large-picture.js";
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
document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  actOnBlock(target);
  const picture = /** @type {HTMLAnchorElement | null} */ (target.closest("a.made__frame"));
  if (!picture || !isPlainClick(event)) return;
  event.preventDefault();
  showLarge(picture);
});
followTheme();

document.querySelector("[data-print-now]")?.addEventListener("click", () => print());
if (document.body.dataset.print !== undefined) {
  // With the fonts and pictures in it, and after highlighting has had its chance.
  const pictures = [...document.querySelectorAll("img")].map((picture) => picture.decode().catch(() => {}));
  Promise.all([document.fonts.ready, ...pictures]).then(() => setTimeout(() => print(), 300));
}
