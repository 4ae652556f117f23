// @ts-check
/**
 * Markdown that grows at its end, cut into blocks that are final and a tail that is not.
 * A top-level block is closed when another one begins behind it. Only whole lines are evidence for
 * that: half a line may still become something else ("#" a heading, "#tag" a word).
 * A fence says itself where it ends, so that however long its code is, no line is looked at twice.
 * Link definitions that come later change earlier blocks, so the end deserves one whole rendering.
 */

import { outline } from "./markdown.js";

/** @typedef {{language: string, codeStart: number, end: RegExp}} Fence `codeStart`: an index into the text */

export class BlockStream {
  /** The source that was said to be final; the tail begins behind it. */
  #final = "";
  /** Up to where whole lines were looked at. */
  #parsedTo = 0;
  /** @type {Fence | null} the tail is one, without an end as yet */
  #fence = null;

  /**
   * Take the text so far. Returns the source that became final since the last call, and the tail.
   * @param {string} text
   * @returns {{final: string, tail: string}}
   */
  update(text) {
    const from = this.#final.length;
    const wholeLines = text.lastIndexOf("\n") + 1;
    while (wholeLines > this.#parsedTo) {
      if (this.#fence) this.#lookForEnd(this.#fence, text, wholeLines);
      else this.#lookForBlocks(text, wholeLines);
    }
    const tailStart = this.#final.length;
    return { final: text.slice(from, tailStart), tail: text.slice(tailStart) };
  }

  /** The fence that the tail is; null for other tails. */
  get fence() {
    return this.#fence;
  }

  /**
   * Whether `text` still begins with what was said to be final: a stop may have cut it, and a server
   * that lost events may write it anew.
   * @param {string} text
   */
  holds(text) {
    return text.startsWith(this.#final) && text.length >= (this.#fence?.codeStart ?? 0);
  }

  /**
   * @param {string} text
   * @param {number} wholeLines
   */
  #lookForBlocks(text, wholeLines) {
    const tail = text.slice(this.#final.length, wholeLines);
    const { starts, last } = outline(tail);
    const start = starts.length < 2 ? 0 : lineOffset(tail, /** @type {number} */ (starts.at(-1)));
    this.#final = text.slice(0, this.#final.length + start);
    this.#parsedTo = wholeLines;
    if (last?.type === "fence") this.#openFence(text, last);
  }

  /**
   * @param {string} text
   * @param {{markup: string, info: string}} fence
   */
  #openFence(text, { markup, info }) {
    const tail = text.slice(this.#final.length);
    const opener = tail.match(/^(?:[ \t]*\n)*([`~]{3,}).*\n/);
    if (!opener) return; // it is indented, and so may be its code: that is left to the parser
    const codeStart = this.#final.length + opener[0].length;
    const language = info.trim().split(/\s+/)[0];
    const end = new RegExp(`^ {0,3}${markup[0]}{${markup.length},}[ \\t]*$`, "m");
    this.#fence = { language, codeStart, end };
    this.#parsedTo = codeStart;
  }

  /**
   * @param {Fence} fence
   * @param {string} text
   * @param {number} wholeLines
   */
  #lookForEnd(fence, text, wholeLines) {
    const lines = text.slice(this.#parsedTo, wholeLines);
    const end = lines.match(fence.end);
    this.#parsedTo += end ? /** @type {number} */ (end.index) + end[0].length + 1 : lines.length;
    if (!end) return;
    this.#final = text.slice(0, this.#parsedTo);
    this.#fence = null;
  }
}

/**
 * Where line number `line` of `text` begins, in UTF-16 units.
 * @param {string} text
 * @param {number} line
 */
function lineOffset(text, line) {
  let offset = 0;
  for (let number = 0; number < line; number += 1) offset = text.indexOf("\n", offset) + 1;
  return offset;
}
