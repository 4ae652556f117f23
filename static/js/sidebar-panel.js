// @ts-check
/** How the sidebar comes and goes: beside the chat it folds away, on a phone it is a sheet over it. */

import { find } from "./dom.js";
import { remember } from "./preferences.js";

const PHONE = matchMedia("(max-width: 48rem)");
const root = document.documentElement;

export function toggleSidebar() {
  if (!PHONE.matches) fold(root.dataset.sidebar !== "closed");
  else if (isSheetOpen()) closeSheet();
  else openSheet();
}

export function closeSheet() {
  if (!isSheetOpen()) return;
  delete root.dataset.sheet;
  find(document, "#chat").inert = false;
  find(document, ".bar [data-toggle-sidebar]").focus();
}

/** Follow its buttons, Escape, and a window that becomes wide. */
export function listenForSidebar() {
  PHONE.addEventListener("change", closeSheet);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("[data-toggle-sidebar]")) toggleSidebar();
    if (target.closest("[data-close-sheet]")) closeSheet();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isSheetOpen()) return;
    event.preventDefault();
    closeSheet();
  });
}

function isSheetOpen() {
  return root.dataset.sheet === "open";
}

function openSheet() {
  root.dataset.sheet = "open";
  find(document, "#chat").inert = true;
  find(document, ".sidebar [data-toggle-sidebar]").focus();
}

/** @param {boolean} isClosed */
function fold(isClosed) {
  if (isClosed) root.dataset.sidebar = "closed";
  else delete root.dataset.sidebar;
  remember("sidebar", isClosed ? "closed" : null);
  find(document, `${isClosed ? ".bar" : ".sidebar"} [data-toggle-sidebar]`).focus();
}
