// @ts-check
/**
 * Markdown that grows at its end, cut into blocks that are final and a tail that is not.
 * A top-level block is closed when another one begins behind it. Only whole lines are evidence for
 * that: half a line may still become something else ("#" a heading, "#tag" a word).
 * Link definitions that come later change earlier blocks, so the end deserves one whole rendering.
 */

import { blockStarts } from "./markdown.js";

export class BlockStream {
  /** The source that was said to be final; the tail begins behind it. */
  #final = "";
  /** Up to where whole lines were looked at. */
  #parsedTo = 0;

  /**
   * Take the text so far. Returns the source that became final since the last call, and the tail.
   * @param {string} text
   * @returns {{final: string, tail: string}}
   */
  update(text) {
    const from = this.#final.length;
    const wholeLines = text.lastIndexOf("\n") + 1;
    if (wholeLines > this.#parsedTo) {
      this.#parsedTo = wholeLines;
      this.#final = text.slice(0, from + lastBlockOffset(text.slice(from, wholeLines)));
    }
    const tailStart = this.#final.length;
    return { final: text.slice(from, tailStart), tail: text.slice(tailStart) };
  }

  /**
   * Whether `text` still begins with what was said to be final: a stop may have cut it, and a server
   * that lost events may write it anew.
   * @param {string} text
   */
  holds(text) {
    return text.startsWith(this.#final);
  }
}

/**
 * Where the last top-level block of `text` begins, in UTF-16 units.
 * @param {string} text
 */
function lastBlockOffset(text) {
  const starts = blockStarts(text);
  if (starts.length < 2) return 0;
  const lastLine = /** @type {number} */ (starts.at(-1));
  let offset = 0;
  for (let line = 0; line < lastLine; line += 1) offset = text.indexOf("\n", offset) + 1;
  return offset;
}
