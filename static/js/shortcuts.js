// @ts-check
/** Keyboard shortcuts, from one list that the help dialog shows too (shortcut-help.js). */

import { isComposing } from "./dom.js";

/**
 * @typedef {object} Shortcut
 * @property {string} [name] for hints elsewhere in the page
 * @property {string} words what it does
 * @property {string} key of the event, in lower case
 * @property {boolean} [mod] with Ctrl or ⌘
 * @property {boolean} [shift]
 * @property {boolean} [alt]
 * @property {boolean} [notInText] not where there is text that the keys would select
 * @property {() => unknown} run false: there was nothing to do, so that the keys keep their usual meaning
 */

const IS_APPLE = /Mac|iP(hone|ad|od)/.test(globalThis.navigator?.platform ?? "");
/** @type {Record<string, string>} */
const KEY_WORDS = {
  escape: "Esc", arrowup: "↑", arrowdown: "↓", arrowleft: "←", arrowright: "→", backspace: "⌫", enter: "Enter",
};

/**
 * Signs by their keys on a Latin keyboard.
 * @type {Record<string, string>}
 */
const SIGNS = {
  Semicolon: ";", Quote: "'", Comma: ",", Period: ".", Slash: "/", Backslash: "\\", Minus: "-", Equal: "=",
  BracketLeft: "[", BracketRight: "]", Backquote: "`",
};

/**
 * @typedef {{key: string, code?: string, ctrlKey: boolean, metaKey: boolean, shiftKey: boolean,
 *   altKey: boolean}} Press
 */

/**
 * The key that was pressed, in lower case. One that writes another script is known by its place: where a
 * Latin keyboard has K is K. Pure.
 * @param {Pick<Press, "key" | "code">} event
 */
export function keyOf({ key, code = "" }) {
  const name = key.toLowerCase();
  if (/^[ -~]+$/.test(name)) return name;
  if (name === "؟") return "?";
  return code.match(/^(?:Key|Digit)(.)$/)?.[1].toLowerCase() ?? SIGNS[code] ?? name;
}

/** Neither letter nor digit: some keyboards need Shift for it, and others do not. @param {string} key */
export function isSign(key) {
  return /^[^\p{L}\p{N}\s]$/u.test(key);
}

/**
 * Whether a key press means a shortcut. Pure.
 * @param {Press} event
 * @param {Pick<Shortcut, "key" | "mod" | "shift" | "alt">} shortcut
 * @param {boolean} isTyping
 * @param {boolean} [isExact] Shift is not forgiven where a sign may need it
 */
export function means(event, shortcut, isTyping, isExact = false) {
  const { key, mod = false, shift = false, alt = false } = shortcut;
  if ((event.ctrlKey || event.metaKey) !== mod || event.altKey !== alt) return false;
  if (!mod && isTyping && !/^(escape|enter|f\d+)$/.test(key)) return false;
  const mayDiffer = isSign(key) && (!mod || (event.shiftKey && !isExact));
  if (event.shiftKey !== shift && !mayDiffer) return false;
  if (alt && event.code === `Key${key.toUpperCase()}`) return true; // with Alt it writes another sign
  // With Shift some keys have another name.
  return keyOf(event) === key || (shift && SIGNS[event.code ?? ""] === key);
}

/**
 * The shortcut that a key press means: Ctrl and / is Shift and 7 on some keyboards, unless that is another one. Pure.
 * @param {Press} event
 * @param {Shortcut[]} shortcuts
 * @param {boolean} isTyping
 */
export function meantBy(event, shortcuts, isTyping) {
  const found = (/** @type {boolean} */ isExact) => shortcuts.find((shortcut) => means(event, shortcut, isTyping, isExact));
  return found(true) ?? found(false);
}

/**
 * Listen for shortcuts, and name them where the page asks for it.
 * @param {Shortcut[]} shortcuts the list is asked anew at each press
 */
export function listenForShortcuts(shortcuts) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || isComposing(event)) return;
    if (document.querySelector("dialog[open], :popover-open")) return; // they have their own keys
    const target = /** @type {HTMLInputElement} */ (event.target);
    const isTyping = target.matches("input, textarea, select");
    const meant = meantBy(event, shortcuts, isTyping);
    if (!meant || (meant.notInText && isTyping && target.value)) return;
    if (meant.run() !== false) event.preventDefault();
  });
  nameShortcuts(shortcuts);
}

/** @param {Shortcut[]} shortcuts */
export function nameShortcuts(shortcuts) {
  for (const hint of document.querySelectorAll("[data-shortcut]")) {
    const name = /** @type {HTMLElement} */ (hint).dataset.shortcut;
    const shortcut = shortcuts.find((one) => one.name === name);
    if (shortcut) hint.textContent = keyWords(shortcut);
  }
}

/** @param {Pick<Shortcut, "key" | "mod" | "shift" | "alt">} shortcut */
export function keyWords({ key, mod, shift, alt }) {
  const last = KEY_WORDS[key] ?? key.toUpperCase();
  if (IS_APPLE) return `${alt ? "⌥" : ""}${shift ? "⇧" : ""}${mod ? "⌘" : ""}${last}`;
  return [mod && "Ctrl", alt && "Alt", shift && "Shift", last].filter(Boolean).join(" + ");
}
