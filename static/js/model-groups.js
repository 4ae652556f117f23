// @ts-check
/** Models and assistants in the order in which they are listed, and the ways between rows. Pure functions. */

import { gettext } from "./i18n.js";
import { matches } from "./word-search.js";

/**
 * @typedef {{title: string, assistants: any[], models: any[]}} Group
 *
 * @param {import("./model-picker.js").Shown} shown
 * @param {string} wanted words that they have
 * @returns {Group[]} without those that are empty; a title where there are several
 */
export function groupsOf({ models, assistants, pinned }, wanted) {
  const isFound = (/** @type {any} */ one) => !wanted.trim() || matches(wanted, [`${one.title ?? ""} ${one.name} ${one.description}`])[0];
  const isPinned = (/** @type {any} */ { name }) => pinned.includes(name);
  const found = models.filter(isFound);
  const first = pinned.flatMap((name) => found.find((model) => model.name === name) ?? []);
  const rest = found.filter((model) => !isPinned(model));
  const groups = [
    { title: gettext("Pinned"), assistants: [], models: first },
    { title: gettext("Assistants"), assistants: assistants.filter(isFound), models: [] },
    { title: gettext("Models"), assistants: [], models: rest },
  ].filter((group) => group.assistants.length || group.models.length);
  return groups.length === 1 && rest.length ? [{ ...groups[0], title: "" }] : groups;
}

/**
 * Where an arrow, Home or End leads from a row, round about; null for other keys.
 * @param {string} key
 * @param {number} at -1: from none
 * @param {number} count
 */
export function stepFrom(key, at, count) {
  if (!count) return null;
  if (key === "ArrowDown") return (at + 1) % count;
  if (key === "ArrowUp") return (Math.max(at, 0) + count - 1) % count;
  if (key === "Home") return 0;
  return key === "End" ? count - 1 : null;
}

/**
 * The next row that begins with a letter.
 * @param {string} key
 * @param {number} at
 * @param {string[]} texts
 */
export function stepTyped(key, at, texts) {
  const begins = (/** @type {string} */ text) => text.trim().toLowerCase().startsWith(key.toLowerCase());
  for (let step = 1; step <= texts.length; step++) {
    const place = (at + step) % texts.length;
    if (begins(texts[place])) return place;
  }
  return null;
}
