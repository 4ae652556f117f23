// @ts-check
/** Places in a document's text: pages and the passage, in code points. Pure functions. */

import { countCodePoints, dropCodePoints, takeCodePoints } from "./code-points.js";
import { gettext } from "./i18n.js";

/**
 * @typedef {[number, number, string, number, number]} Page its start, end and label in the text, its
 *   width and height in points
 * @typedef {{start: number, end: number}} Passage
 * @typedef {{kind: "label" | "text" | "mark", text: string, page: number}} Segment
 * @typedef {{cells: string[], isMarked: boolean}} Row
 * @typedef {Segment | {kind: "table", rows: Row[], hasHead: boolean}} Block
 */

const ROW = /^\|.*\|$/;
const RULE = /^\|(?: ?:?-+:? ?\|)+$/;

/**
 * A piece of text as it is drawn: words, words that are marked, and the names of pages that begin in it.
 * @param {{start: number, text: string}} piece
 * @param {Page[]} pages
 * @param {Passage | null} passage
 * @returns {Segment[]}
 */
export function segments(piece, pages, passage) {
  const end = piece.start + countCodePoints(piece.text);
  const cuts = new Set([piece.start, end]);
  /** @type {Map<number, number[]>} */
  const begun = new Map();
  pages.forEach(([start], index) => {
    if (pages.length < 2 || start < piece.start || start >= end) return;
    cuts.add(start);
    begun.set(start, [...(begun.get(start) ?? []), index]);
  });
  for (const place of passage ? [passage.start, passage.end] : []) {
    if (place > piece.start && place < end) cuts.add(place);
  }
  const places = [...cuts].sort((a, b) => a - b);
  /** @type {Segment[]} */
  const found = [];
  let rest = piece.text;
  places.forEach((from, index) => {
    for (const page of begun.get(from) ?? []) found.push({ kind: "label", text: pageName(pages, page), page: page + 1 });
    const to = places[index + 1];
    if (to === undefined) return;
    const text = takeCodePoints(rest, to - from);
    rest = dropCodePoints(rest, to - from);
    const isMarked = passage !== null && from >= passage.start && to <= passage.end;
    found.push({ kind: isMarked ? "mark" : "text", text, page: pageAt(pages, from) });
  });
  return found;
}

/**
 * The same with rows of tables together, as parsing writes them: `| a | b |`. A row is marked if a part of it is.
 * @param {Segment[]} found
 * @returns {Block[]}
 */
export function withTables(found) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {{parts: Segment[], line: string}} */
  let open = { parts: [], line: "" };
  /** @type {{kind: "table", rows: Row[], hasHead: boolean} | null} */
  let table = null;
  const endLine = () => {
    const line = open.line.replace(/\n$/, "");
    if (RULE.test(line) && table && table.rows.length === 1) table.hasHead = true;
    else if (ROW.test(line) && !RULE.test(line)) {
      if (!table) {
        table = { kind: "table", rows: [], hasHead: false };
        blocks.push(table);
      }
      table.rows.push({ cells: cellsOf(line), isMarked: open.parts.some(({ kind, text }) => kind === "mark" && text.trim() !== "") });
    } else if (line || open.parts.length) {
      if (table && !line) open.parts = []; // what divides a table from what follows is its margin
      table = null;
      for (const part of open.parts) join(blocks, part);
    }
    open = { parts: [], line: "" };
  };
  for (const segment of found) {
    if (segment.kind === "label") {
      endLine();
      table = null;
      blocks.push(segment);
      continue;
    }
    for (const text of segment.text.match(/[^\n]*\n|[^\n]+/g) ?? []) {
      open.parts.push({ ...segment, text });
      open.line += text;
      if (text.endsWith("\n")) endLine();
    }
  }
  endLine();
  return blocks;
}

/** @param {string} line */
function cellsOf(line) {
  return line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @param {Block[]} blocks @param {Segment} part */
function join(blocks, part) {
  const last = blocks.at(-1);
  if (last && last.kind === part.kind && last.kind !== "table" && last.kind !== "label") last.text += part.text;
  else blocks.push({ ...part });
}

/**
 * The number of the page that a character is on; between two, the one before.
 * @param {Page[]} pages
 * @param {number} place
 */
export function pageAt(pages, place) {
  let [low, high] = [0, pages.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pages[middle][0] <= place) low = middle + 1;
    else high = middle;
  }
  return Math.max(1, low);
}

/**
 * Its own name, if it has one; else its number.
 * @param {Page[]} pages
 * @param {number} index
 */
export function pageName(pages, index) {
  const label = pages[index][2];
  return label && label !== String(index + 1) ? label : gettext("Page %(n)s", { n: index + 1 });
}

/**
 * The text cut where its last line ends, so that what is drawn next begins with a whole one.
 * @param {string} text
 */
export function wholeLines(text) {
  const end = text.lastIndexOf("\n");
  return end > 0 ? text.slice(0, end + 1) : text;
}

/**
 * How much of the beginning has to go, in code points, so that the text begins with a whole line.
 * @param {string} text
 */
export function charsBeforeLine(text) {
  const end = text.indexOf("\n");
  return end < 0 || end === text.length - 1 ? 0 : countCodePoints(text.slice(0, end + 1));
}
