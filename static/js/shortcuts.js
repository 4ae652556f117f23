// @ts-check
/** Keyboard shortcuts, from one list that the help dialog shows too. */

import { element, find } from "./dom.js";

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
 * Whether a key press means a shortcut. Pure.
 * @param {{key: string, code?: string, ctrlKey: boolean, metaKey: boolean, shiftKey: boolean,
 *   altKey: boolean}} event
 * @param {Pick<Shortcut, "key" | "mod" | "shift" | "alt">} shortcut
 * @param {boolean} isTyping
 */
export function means(event, shortcut, isTyping) {
  const { key, mod = false, shift = false, alt = false } = shortcut;
  if ((event.ctrlKey || event.metaKey) !== mod || event.altKey !== alt) return false;
  if (!mod && isTyping && !["escape", "enter"].includes(key)) return false;
  // A sign such as ? needs Shift on some keyboards and not on others.
  const isLetter = /^[a-z]$|^.{2,}$/.test(key);
  if ((isLetter || mod) && event.shiftKey !== shift) return false;
  if (alt && event.code === `Key${key.toUpperCase()}`) return true; // with Alt it writes another sign
  return event.key.toLowerCase() === key || (shift && event.code === CODES[key]);
}

/** With Shift some keys have another name. @type {Record<string, string>} */
const CODES = { ";": "Semicolon", "'": "Quote" };

/**
 * Listen for shortcuts and fill the help dialog.
 * @param {Shortcut[]} shortcuts
 */
export function listenForShortcuts(shortcuts) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (document.querySelector("dialog[open], :popover-open")) return; // they have their own keys
    const target = /** @type {HTMLInputElement} */ (event.target);
    const isTyping = target.matches("input, textarea, select");
    const meant = shortcuts.find((shortcut) => means(event, shortcut, isTyping));
    if (!meant || (meant.notInText && isTyping && target.value)) return;
    if (meant.run() !== false) event.preventDefault();
  });
  const groups = Map.groupBy(shortcuts, (shortcut) => shortcut.words);
  find(document, ".shortcut-list").replaceChildren(...[...groups].map(helpRow));
  for (const hint of document.querySelectorAll("[data-shortcut]")) {
    const name = /** @type {HTMLElement} */ (hint).dataset.shortcut;
    const shortcut = shortcuts.find((one) => one.name === name);
    if (shortcut) hint.textContent = keyWords(shortcut);
  }
}

/** @param {[string, Shortcut[]]} group what it does, and each way to do it */
function helpRow([words, shortcuts]) {
  const keys = shortcuts.map((shortcut) => element("kbd", {}, [keyWords(shortcut)]));
  return element("div", {}, [element("dt", {}, [words]), element("dd", {}, keys)]);
}

/** @param {Pick<Shortcut, "key" | "mod" | "shift" | "alt">} shortcut */
export function keyWords({ key, mod, shift, alt }) {
  const last = KEY_WORDS[key] ?? key.toUpperCase();
  if (IS_APPLE) return `${alt ? "⌥" : ""}${shift ? "⇧" : ""}${mod ? "⌘" : ""}${last}`;
  return [mod && "Ctrl", alt && "Alt", shift && "Shift", last].filter(Boolean).join(" + ");
}
