// @ts-check
/**
 * Keys that somebody has chosen in the place of the usual ones; this browser keeps them. A shortcut is
 * known by its usual keys, in whatever language its words are.
 */

import { gettext } from "./i18n.js";
import { preference, remember } from "./preferences.js";
import { isSign, keyOf } from "./shortcuts.js";

/**
 * @typedef {{key: string, mod?: boolean, shift?: boolean, alt?: boolean}} Keys
 * @typedef {import("./shortcuts.js").Shortcut} Shortcut
 * @typedef {Record<string, Keys>} OwnKeys by chord of the usual keys
 */

const MODIFIERS = ["control", "meta", "shift", "alt", "altgraph", "capslock", "dead", "process"];
/** What people cannot do without while they write, and what browsers do not give away. */
const TAKEN = ["a", "c", "v", "x", "z", "y", "t", "n", "w", "r"].map((key) => `mod+${key}`);
const NOT_ALONE = ["tab", "enter", " ", "backspace", "delete", "arrowup", "arrowdown", "arrowleft", "arrowright"];

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

/** @param {OwnKeys} own */
export function keepOwnKeys(own) {
  remember("shortcuts", Object.keys(own).length ? JSON.stringify(own) : null);
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

/**
 * The keys of a key press; null while only modifiers are held. A sign is itself, with Shift or without.
 * @param {import("./shortcuts.js").Press} event
 * @returns {Keys | null}
 */
export function keysOf({ key, code = "", ctrlKey, metaKey, shiftKey, altKey }) {
  const name = keyOf({ key, code });
  if (MODIFIERS.includes(name)) return null;
  const letter = code.match(/^Key([A-Z])$/)?.[1].toLowerCase();
  return { key: altKey && letter ? letter : name, mod: ctrlKey || metaKey, shift: shiftKey && !isSign(name), alt: altKey };
}

/** What cannot be told from one another on every keyboard is the same. @param {Keys} keys */
function samenessOf({ key, shift, ...keys }) {
  return chordOf({ key, ...keys, shift: shift && !isSign(key) });
}

/**
 * Why keys cannot be those of a shortcut, for people; null if they can.
 * @param {Shortcut[]} shortcuts with the keys that they have now
 * @param {Shortcut} shortcut one of them
 * @param {Keys} keys
 */
export function objection(shortcuts, shortcut, keys) {
  const chord = chordOf(keys);
  if (TAKEN.includes(chord)) return gettext("The browser needs these keys itself.");
  if (NOT_ALONE.includes(keys.key) && !keys.mod && !keys.alt) return gettext("This key is needed for writing and moving.");
  if (/^[a-z0-9]$/.test(keys.key) && !keys.mod && !keys.alt) return gettext("Add Ctrl, ⌘ or Alt, for this is typed in texts.");
  const other = shortcuts.find((one) => one !== shortcut && samenessOf(one) === samenessOf(keys));
  return other ? gettext("These keys are taken: %(shortcut)s.", { shortcut: other.words }) : null;
}

/**
 * Say the keys that are right where the page's own markup names the usual ones.
 * @param {OwnKeys} own
 */
export function renameKeyHints(own) {
  for (const element of document.querySelectorAll("[aria-keyshortcuts]")) {
    const usual = element.getAttribute("aria-keyshortcuts")?.split(" ")[0].toLowerCase().replace("control", "mod");
    const keys = own[usual ?? ""];
    if (!keys) continue;
    const rest = [keys.alt && "Alt", keys.shift && "Shift", keys.key].filter(Boolean).join("+");
    element.setAttribute("aria-keyshortcuts", keys.mod ? `Control+${rest} Meta+${rest}` : rest);
  }
}
