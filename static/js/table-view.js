// @ts-check
/** A table that scrolls inside its frame, and its cells as rows of text. */

import { barButton, scrollable } from "./code-view.js";
import { element } from "./dom.js";
import { gettext } from "./i18n.js";
import { plainText } from "./plain-text.js";

/** @param {HTMLTableElement} table */
export function frameTable(table) {
  const scroller = element("div", { class: "table__scroll", ...scrollable(gettext("Table")) });
  const bar = element("div", { class: "table__bar" }, [barButton("copy-table", "copy", gettext("Copy as CSV"), {}, true)]);
  const frame = element("div", { class: "table" }, [scroller, bar]);
  table.replaceWith(frame);
  scroller.append(table);
}

/**
 * @param {HTMLTableElement} table
 * @returns {string[][]}
 */
export function rowsOf(table) {
  return [...table.rows].map((row) => [...row.cells].map((cell) => plainText(cell)));
}
