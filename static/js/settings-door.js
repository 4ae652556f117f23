// @ts-check
/**
 * Every way to the settings from the chat. They come over it, so that it stays as it is, and stand in its
 * address behind the #: back closes them, a reload opens them again. Their dialog is loaded with the first wish.
 */

import { isPlainClick } from "./dom.js";
import { settingsAt } from "./navigation.js";

/** What asks for the password again, sends a file, or ends the account is a page of its own. */
const ON_ITS_OWN = /^\/settings\/(security|export|delete-account)/;

/** @param {string} path */
export function opensOverTheChat(path) {
  return path.startsWith("/settings/") && !ON_ITS_OWN.test(path);
}

/**
 * The address of a link that a plain click leads over the chat; null for all other clicks.
 * @param {MouseEvent} event
 */
export function wantedAddress(event) {
  if (!isPlainClick(event)) return null;
  const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest?.("a[href^='/settings/']"));
  if (!link || link.target || link.hasAttribute("download") || !opensOverTheChat(link.pathname)) return null;
  return link.getAttribute("href");
}

/**
 * @param {import("./settings-dialog.js").Page} page
 * @returns {(address: string) => void} opens a page of the settings
 */
export function listenForSettings(page) {
  /** @type {Promise<import("./settings-dialog.js").SettingsDialog> | null} */
  let dialog = null;
  const load = () => {
    dialog ??= import("./settings-dialog.js").then(({ SettingsDialog }) => new SettingsDialog(page));
    dialog.catch(() => (dialog = null)); // tried again at the next wish
    return dialog;
  };
  const open = (/** @type {string} */ address) => load().then((it) => it.go(address), () => location.assign(address));
  const follow = () => {
    if (dialog || settingsAt()) load().then((it) => it.follow(), () => {});
  };
  document.addEventListener("click", (event) => {
    const address = wantedAddress(event);
    if (!address) return;
    event.preventDefault();
    open(address);
  });
  addEventListener("popstate", follow);
  follow();
  return open;
}
