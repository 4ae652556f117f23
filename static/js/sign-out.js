// @ts-check
/**
 * Signing out leaves nothing in the browser that was written and not sent, whoever wrote it: the
 * next to sit here may be somebody else. Every page with a form[data-sign-out] loads this; tabs that
 * are still open hear of it through the storage.
 */

import { forgetAll, keepPlace, preference, remember } from "./preferences.js";

/** @type {(() => void)[]} */
const listeners = [];

/**
 * @param {() => void} listener called when somebody signs out in this tab or in another
 */
export function onSignOut(listener) {
  listeners.push(listener);
}

function tell() {
  keepPlace("/");
  for (const listener of listeners) listener();
}

document.addEventListener("submit", ({ target }) => {
  if (!(/** @type {Element} */ (target).matches("form[data-sign-out]"))) return;
  tell();
  forgetAll("draft.");
  globalThis.caches?.delete(`vitrine-chats-${preference("keep-chats")}`); // kept-chats.js
  remember("signed-out", new Date().toISOString()); // a value that differs: only changes are told
});

addEventListener("storage", ({ key, newValue }) => {
  if (key === "vitrine.signed-out" && newValue !== null) tell();
});
