// @ts-check
/**
 * A growing markdown text in an element: finished blocks are put in once and never touched again,
 * only the tail is rendered anew. When the text is complete it is rendered once more as a whole,
 * because a link may be defined behind its use.
 */

import { BlockStream } from "./blocks.js";
import { morphChildren } from "./dom.js";
import { highlighterIsReady, loadHighlighter, toFragment, toHtml } from "./markdown.js";

export class Prose {
  #text = "";
  #isComplete = false;
  #stream = new BlockStream();
  /** @type {import("./markdown.js").References} */
  #references = {};
  #numFinalNodes = 0;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /**
   * Show `text`; `isComplete` says that no more follows.
   * @param {string} text
   * @param {boolean} isComplete
   */
  update(text, isComplete) {
    if (text === this.#text && isComplete === this.#isComplete) return;
    const isReopened = this.#isComplete && !isComplete; // what was rendered whole has no blocks
    if (isReopened || !this.#stream.holds(text)) this.#startOver();
    this.#text = text;
    this.#isComplete = isComplete;
    this.#render();
    if (!highlighterIsReady() && this.root.querySelector("pre > code")) this.#highlight();
  }

  #render() {
    if (this.#isComplete) morphChildren(this.root, toFragment(toHtml(this.#text)));
    else this.#renderTail();
  }

  #renderTail() {
    const { final, tail } = this.#stream.update(this.#text);
    const nodes = toFragment(toHtml(final, this.#references));
    const numNewFinal = nodes.childNodes.length;
    // A half written link definition must not stay: the first one of a name wins.
    nodes.append(toFragment(toHtml(tail, { ...this.#references })));
    morphChildren(this.root, nodes, this.#numFinalNodes);
    this.#numFinalNodes += numNewFinal;
  }

  async #highlight() {
    await loadHighlighter();
    this.#startOver();
    this.#render();
  }

  #startOver() {
    this.#stream = new BlockStream();
    this.#references = {};
    this.#numFinalNodes = 0;
  }
}
