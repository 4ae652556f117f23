// @ts-check
/** What this browser remembers. Storage may be full or forbidden: then it remembers nothing. */

/**
 * @typedef {"theme" | "sidebar" | "send-key" | "model"} Preference
 * @param {Preference | `draft.${string}`} name
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
 * @param {Preference | `draft.${string}`} name
 * @param {string | null} value null forgets
 */
export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(`vitrine.${name}`);
    else localStorage.setItem(`vitrine.${name}`, value);
  } catch {
    return; // nothing depends on it
  }
}
