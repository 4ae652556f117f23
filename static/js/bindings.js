// @ts-check
/**
 * Keys that somebody has chosen in the place of the usual ones; this browser keeps them. A shortcut is
 * known by its usual keys, in whatever language its words are.
 */

import { preference } from "./preferences.js";

/**
 * @typedef {{key: string, mod?: boolean, shift?: boolean, alt?: boolean}} Keys
 * @typedef {import("./shortcuts.js").Shortcut} Shortcut
 * @typedef {Record<string, Keys>} OwnKeys by chord of the usual keys
 */

/**
 * Keys in one word: mod+shift+o.
 * @param {Keys} keys
 */
export function chordOf({ key, mod, shift, alt }) {
  return [mod && "mod", alt && "alt", shift && "shift", key].filter(Boolean).join("+");
}

/** @returns {OwnKeys} */
export function ownKeys() {
  try {
    const kept = JSON.parse(preference("shortcuts") ?? "{}");
    return Object.fromEntries(Object.entries(kept).filter(([, keys]) => typeof keys?.key === "string"));
  } catch {
    return {}; // somebody else wrote there
  }
}

/**
 * @param {Shortcut[]} shortcuts
 * @param {OwnKeys} [own]
 * @returns {Shortcut[]}
 */
export function withOwnKeys(shortcuts, own = ownKeys()) {
  return shortcuts.map((shortcut) => {
    const keys = own[chordOf(shortcut)];
    if (!keys) return shortcut;
    const { key, mod = false, shift = false, alt = false } = keys;
    return { ...shortcut, key, mod, shift, alt };
  });
}
