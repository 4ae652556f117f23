// @ts-check
/** What this browser remembers. Storage may be full or forbidden: then it remembers nothing. */

/**
 * @typedef {"theme" | "text-size" | "density" | "long-paste" | "sidebar" | "send-key" | "wrap-code" | "language" | "signed-out" | "signed-in" | "shortcuts" |
 *   "folders" | "keep-chats" | "dictation" | "notify"} Preference
 * @param {Preference | `draft.${string}` | `budget.${string}`} name
 * @returns {string | null}
 */
export function preference(name) {
  try {
    return localStorage.getItem(`vitrine.${name}`);
  } catch {
    return null;
  }
}

/**
 * @param {Preference | `draft.${string}` | `budget.${string}`} name
 * @param {string | null} value null forgets
 * @returns {boolean} whether it is remembered
 */
export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(`vitrine.${name}`);
    else localStorage.setItem(`vitrine.${name}`, value);
    return true;
  } catch {
    return false;
  }
}

/** The address that the chat page had last in this tab; the chat that began nowhere is at "/". */
export function lastPlace() {
  try {
    return sessionStorage.getItem("vitrine.place") ?? "/";
  } catch {
    return "/";
  }
}

/** @param {string} path of the chat page */
export function keepPlace(path) {
  try {
    sessionStorage.setItem("vitrine.place", path);
  } catch {
    return; // the way back leads to a new chat
  }
}

/**
 * @param {`draft.${string}`} prefix of the names that are forgotten
 */
export function forgetAll(prefix) {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(`vitrine.${prefix}`)) localStorage.removeItem(key);
    }
  } catch {
    return; // what was never kept need not be forgotten
  }
}
