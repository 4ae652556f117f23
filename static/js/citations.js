// @ts-check
/**
 * Numbers in an answer that name excerpts of documents: [1], [1][2], [1, 2]. Each becomes a link to where
 * the excerpt stands; one that names none is marked. What it says comes with source-card.js.
 *
 * @typedef {import("./sources.js").Cited} Cited
 * @typedef {{numbers: Map<number, Cited>, isChecked: boolean}} Citing what an answer can cite; whether it was
 *   written from documents, so that a number without an excerpt is wrong
 */

import { viewerUrl } from "./document-links.js";
import { drawerOf, element } from "./dom.js";
import { gettext } from "./i18n.js";
import { placeOf } from "./sources.js";

const CITATION = /\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]/g;
const OPEN_CITATION = /\[\s*(?:\d{1,3}\s*[,;]?\s*){0,8}$/;
const NOT_IN = "a, button, code, pre, .math, .code";

/** @type {Citing} */
export const NOTHING_TO_CITE = { numbers: new Map(), isChecked: false };

/**
 * Text, and the numbers in it, in order.
 * @param {string} text
 * @returns {(string | number[])[]}
 */
export function piecesOf(text) {
  /** @type {(string | number[])[]} */
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(CITATION)) {
    if (match.index > end) pieces.push(text.slice(end, match.index));
    pieces.push(match[1].split(/[,;]/).map(Number));
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}

/**
 * The numbers that a text cites, in the order of their first use. Code and links are not looked at.
 * @param {string} markdown
 */
export function citedIn(markdown) {
  const prose = markdown.replace(/(^|\n)\s*(`{3,}|~{3,})[\s\S]*?(\n\s*\2|$)|`[^`\n]*`/g, " ");
  return [...new Set(piecesOf(prose).flatMap((piece) => (typeof piece === "string" ? [] : piece)))];
}

/**
 * A growing text without a number that is half written at its end.
 * @param {string} text
 */
export function withoutHalfCitation(text) {
  return text.replace(OPEN_CITATION, "");
}

/**
 * Make the numbers in rendered text links.
 * @param {Node} root
 * @param {Citing} citing
 */
export function cite(root, citing) {
  if (!citing.isChecked && !citing.numbers.size) return;
  for (const node of [...root.childNodes]) {
    if (node instanceof Text) citeText(node, citing);
    else if (node instanceof Element && !node.matches(NOT_IN) && !drawerOf(node)) cite(node, citing);
  }
}

/**
 * @param {Text} node
 * @param {Citing} citing
 */
function citeText(node, citing) {
  if (!node.data.includes("[")) return;
  const pieces = piecesOf(node.data);
  if (pieces.every((piece) => typeof piece === "string")) return;
  node.replaceWith(...pieces.flatMap((piece) => (typeof piece === "string" ? [piece] : shown(piece, citing))));
}

/**
 * @param {number[]} numbers of one pair of brackets
 * @param {Citing} citing
 */
function shown(numbers, { numbers: known, isChecked }) {
  if (!isChecked && !numbers.some((number) => known.has(number))) return [`[${numbers.join(", ")}]`];
  return numbers.map((number) => {
    const cited = known.get(number);
    return cited ? citation(cited) : wrong(number);
  });
}

/** @param {Cited} cited */
function citation({ excerpt, answer }) {
  const { number, name } = excerpt;
  const label = [gettext("Source %(n)s: %(name)s", { n: number, name }), placeOf(excerpt).page].filter(Boolean).join(", ");
  return element("a", { class: "citation", "aria-label": label, ...linkTo(excerpt, answer) }, inBrackets(number));
}

/**
 * Says so to whoever points at it, and to fingers and keys as well. No button: of that a copy has no text.
 * @param {number} number
 */
function wrong(number) {
  const words = gettext("No such source");
  const named = { role: "button", tabindex: "0", title: words, "aria-label": `${number}: ${words}` };
  const mark = element("span", { class: "citation citation--wrong", ...named }, inBrackets(number));
  const tell = () => mark.dispatchEvent(new CustomEvent("problem", { bubbles: true, detail: `[${number}]: ${words}` }));
  mark.addEventListener("click", tell);
  mark.addEventListener("keydown", ({ key }) => void (key === "Enter" && tell()));
  return mark;
}

/**
 * Brackets that are there for whoever copies the text.
 * @param {number} number
 */
function inBrackets(number) {
  const bracket = (/** @type {string} */ sign) => element("span", { class: "citation__bracket" }, [sign]);
  return [bracket("["), String(number), bracket("]")];
}

/**
 * Attributes of a link to an excerpt, at which its card is shown (source-card.js).
 * @param {import("./sources.js").Excerpt} excerpt
 * @param {string} answer that it was found for
 */
export function linkTo(excerpt, answer) {
  return {
    href: viewerUrl(excerpt), target: "_blank", rel: "noopener",
    "data-excerpt": String(excerpt.number), "data-answer": answer, "data-name": excerpt.name,
  };
}
