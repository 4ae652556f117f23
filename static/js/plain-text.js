// @ts-check
/** What toFragment made, as text that reads well where there is no markup. */

import { drawerOf } from "./dom.js";

const BLOCK = /^(P|H[1-6]|UL|OL|BLOCKQUOTE|PRE|TABLE|HR|DIV|FIGURE)$/;

/**
 * @param {Node} node
 * @returns {string}
 */
export function plainText(node) {
  return textOf(node).replace(/[ \t]+\n/g, "\n").replace(/\n{3,}/g, "\n\n").trim();
}

/**
 * @param {Node} node
 * @returns {string}
 */
function textOf(node) {
  const source = /** @type {any} */ (drawerOf(node))?.source;
  if (source !== undefined) return around(node, source);
  if (node instanceof Text) return node.data;
  switch (node.nodeName) {
    case "BR": return "\n";
    case "HR": return "\n\n* * *\n\n";
    case "TR": return `${children(node).map(plainText).join("\t")}\n`;
    case "UL": case "OL": return `\n${listText(/** @type {HTMLElement} */ (node))}\n`;
    case "BUTTON": case "svg": return "";
    default: return around(node, children(node).map(textOf).join(""));
  }
}

/**
 * @param {Node} node
 * @param {string} text
 */
function around(node, text) {
  return BLOCK.test(node.nodeName) ? `\n\n${text}\n\n` : text;
}

/** @param {HTMLElement} list */
function listText(list) {
  const first = Number(list.getAttribute("start") ?? 1);
  const items = children(list).filter((child) => child.nodeName === "LI");
  return items
    .map((item, index) => {
      const mark = list.nodeName === "OL" ? `${first + index}. ` : "- ";
      return mark + plainText(item).replaceAll("\n", `\n${" ".repeat(mark.length)}`);
    })
    .join("\n");
}

/** @param {Node} node */
function children(node) {
  return [...node.childNodes].filter((child) => child.nodeName !== "#text" || child.parentNode?.nodeName !== "TABLE");
}
