// @ts-check
/** Which keys a shortcut may be given, and keeping them. */

import { chordOf } from "./bindings.js";
import { gettext } from "./i18n.js";
import { remember } from "./preferences.js";
import { isSign, keyOf } from "./shortcuts.js";

/**
 * @typedef {import("./bindings.js").Keys} Keys
 * @typedef {import("./bindings.js").OwnKeys} OwnKeys
 * @typedef {import("./shortcuts.js").Shortcut} Shortcut
 */

const MODIFIERS = ["control", "meta", "shift", "alt", "altgraph", "capslock", "dead", "process"];
/** What people cannot do without while they write, and what browsers do not give away. */
const TAKEN = ["a", "c", "v", "x", "z", "y", "t", "n", "w", "r"].map((key) => `mod+${key}`);
const NOT_ALONE = ["tab", "enter", " ", "backspace", "delete", "arrowup", "arrowdown", "arrowleft", "arrowright"];

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

/** @param {OwnKeys} own */
export function keepOwnKeys(own) {
  remember("shortcuts", Object.keys(own).length ? JSON.stringify(own) : null);
}
