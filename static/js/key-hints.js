// @ts-check
/** Loaded where somebody has chosen other keys: what the chat listens for, and names, follows. */

import { ownKeys, withOwnKeys } from "./bindings.js";
import { keyWords, nameShortcuts } from "./shortcuts.js";

/** @typedef {import("./shortcuts.js").Shortcut} Shortcut */

/**
 * @param {Shortcut[]} usual with their usual keys
 * @param {Shortcut[]} shortcuts those that the page listens for, which change
 * @param {import("./composer.js").ChatComposer} composer
 */
export function followKeys(usual, shortcuts, composer) {
  const own = ownKeys();
  shortcuts.splice(0, shortcuts.length, ...withOwnKeys(usual, own));
  nameShortcuts(shortcuts);
  renameKeyHints(own);
  const stop = shortcuts.find(({ name }) => name === "stop");
  if (stop) composer.stopKeys = keyWords(stop);
  if (!composer.form.hasAttribute("data-running")) return;
  for (const isRunning of [false, true]) composer.setRunning(isRunning); // what names them is written anew
}

/**
 * The page's own markup names the usual keys: say those that are right, also in what a <template> will be copied to.
 * @param {import("./bindings.js").OwnKeys} own
 */
function renameKeyHints(own) {
  const roots = [document, ...[...document.querySelectorAll("template")].map(({ content }) => content)];
  for (const element of roots.flatMap((root) => [.../** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[aria-keyshortcuts]"))])) {
    const usual = (element.dataset.usualKeys ??= element.getAttribute("aria-keyshortcuts") ?? "");
    const keys = own[usual.split(" ")[0].toLowerCase().replace("control", "mod")];
    element.setAttribute("aria-keyshortcuts", keys ? ariaKeys(keys) : usual);
  }
}

/** @param {import("./bindings.js").Keys} keys */
function ariaKeys({ key, mod, alt, shift }) {
  const rest = [alt && "Alt", shift && "Shift", key].filter(Boolean).join("+");
  return mod ? `Control+${rest} Meta+${rest}` : rest;
}
