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

/** Follow its buttons, Escape, a window that becomes wide, and the links that skip to parts of the page. */
export function listenForSidebar() {
  PHONE.addEventListener("change", closeSheet);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("[data-toggle-sidebar]")) toggleSidebar();
    if (target.closest("[data-close-sheet]")) closeSheet();
    const skip = /** @type {HTMLAnchorElement | null} */ (target.closest(".skip-link"));
    if (skip) skipTo(event, skip.hash);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isSheetOpen()) return;
    event.preventDefault();
    closeSheet();
  });
}

/**
 * Without a new address: the page would read its chat again for it.
 * @param {Event} event
 * @param {string} selector
 */
function skipTo(event, selector) {
  event.preventDefault();
  const isAway = PHONE.matches ? !isSheetOpen() : root.dataset.sidebar === "closed";
  if (selector === "#chats" && isAway) toggleSidebar();
  find(document, selector).focus();
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
