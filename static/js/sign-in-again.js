// @ts-check
/**
 * A session has ended while its page is open, perhaps in the middle of a sentence. Its owner signs in in
 * a window of its own, which works for every way to sign in, and the page goes on where it was.
 */

import { onChange } from "./preferences.js";

const WINDOW = "/accounts/signed-in";
const WHO = "/accounts/who";

/** @typedef {{user: string, csrf: string}} Who */

/** Ask for the password where nothing that was written can be lost. In answer to a click. */
export function signInAgain() {
  const opened = window.open(WINDOW, "vitrine-sign-in", "popup,width=480,height=760");
  if (!opened) location.assign(`/accounts/login/?next=${location.pathname}`);
}

/**
 * Tell of it when somebody may have signed in: in another window, or while this one was not looked at.
 * @param {() => void} listener
 */
export function onSignIn(listener) {
  onChange("signed-in", listener);
  addEventListener("focus", listener);
}

/**
 * Whose session it is now.
 * @param {typeof fetch} [fetching]
 * @returns {Promise<Who | null>} null: nobody's, or nobody knows
 */
export async function who(fetching = fetch) {
  try {
    const response = await fetching(WHO, { redirect: "error", cache: "no-store" });
    return response.ok ? await response.json() : null;
  } catch {
    return null; // it leads to the sign-in, or the line is down
  }
}

/**
 * A new session has a new token.
 * @param {string} csrf
 */
export function renewForms(csrf) {
  for (const input of document.querySelectorAll('input[name="csrfmiddlewaretoken"]')) {
    /** @type {HTMLInputElement} */ (input).value = csrf;
  }
}
