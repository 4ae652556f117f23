// @ts-check
/**
 * A growing markdown text in an element: finished blocks are put in once and never touched again,
 * only the tail is rendered anew. When the text is complete it is rendered once more as a whole,
 * because a link may be defined behind its use.
 */

import { BlockStream } from "./blocks.js";
import { NOTHING_TO_CITE, cite, withoutHalfCitation } from "./citations.js";
import { CodeView } from "./code-view.js";
import { drawerOf, morphChildren } from "./dom.js";
import { toFragment, toHtml } from "./markdown.js";
import { withoutTags } from "./text-safety.js";
import { asItWillLook } from "./unfinished.js";

const SLOW_MS = 8;
const PAUSES = 3; // so it takes a quarter of the time at most
const DRAWN = ".code, .math, .held-image";

export class Prose {
  #text = "";
  #isComplete = false;
  #stream = new BlockStream();
  /** @type {import("./markdown.js").References} */
  #references = {};
  #numFinalNodes = 0;
  #pause = 0;
  #citing = NOTHING_TO_CITE;
  #citingKey = keyOf(NOTHING_TO_CITE);

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /**
   * Show `text`; `isComplete` says that no more follows.
   * @param {string} text
   * @param {boolean} isComplete
   * @param {import("./citations.js").Citing} [citing] what its numbers name
   */
  update(text, isComplete, citing = NOTHING_TO_CITE) {
    const key = keyOf(citing);
    const isCitedAnew = key !== this.#citingKey;
    if (text === this.#text && isComplete === this.#isComplete && !isCitedAnew) return;
    const isReopened = this.#isComplete && !isComplete; // what was rendered whole has no blocks
    if (isReopened || isCitedAnew || !this.#stream.holds(text)) this.#startOver();
    this.#citing = citing;
    this.#citingKey = key;
    this.#text = text;
    this.#isComplete = isComplete;
    if (isComplete) this.#renderWhole();
    else if (!this.#pause) this.#renderNow();
  }

  /** A long list or table is one block: what takes long is done less often. */
  #renderNow() {
    const startedAt = performance.now();
    this.#renderTail();
    const tookMs = performance.now() - startedAt;
    if (tookMs < SLOW_MS) return;
    this.#pause = setTimeout(() => {
      this.#pause = 0;
      if (!this.#isComplete) this.#renderNow();
    }, PAUSES * tookMs);
  }

  #renderWhole() {
    const nodes = toFragment(toHtml(this.#text));
    cite(nodes, this.#citing);
    morphChildren(this.root, nodes);
    draw([...this.root.childNodes], true);
  }

  #renderTail() {
    const { final, tail } = this.#stream.update(this.#text);
    if (!final && this.#growsCode()) return;
    const nodes = toFragment(toHtml(final, this.#references));
    const numNewFinal = nodes.childNodes.length;
    // A half written link definition must not stay: the first one of a name wins.
    const shown = this.#stream.fence ? tail : asItWillLook(this.#citing.isChecked ? withoutHalfCitation(tail) : tail);
    nodes.append(toFragment(toHtml(shown, { ...this.#references }, true)));
    cite(nodes, this.#citing);
    morphChildren(this.root, nodes, this.#numFinalNodes);
    const present = [...this.root.childNodes].slice(this.#numFinalNodes);
    draw(present.slice(0, numNewFinal), true);
    draw(present.slice(numNewFinal), false);
    this.#numFinalNodes += numNewFinal;
  }

  /** Whether the tail is a code block on the screen, and so only its code has to grow. */
  #growsCode() {
    const { fence } = this.#stream;
    const view = drawerOf(this.root.lastChild);
    if (!fence || !(view instanceof CodeView) || view.language !== fence.language) return false;
    if (this.root.childNodes.length !== this.#numFinalNodes + 1) return false;
    const code = this.#text.slice(fence.codeStart);
    view.text = withoutTags(code).replace(/(^|\n) {0,3}[`~]+$/, "$1"); // half an end
    view.draw();
    return true;
  }

  #startOver() {
    this.#stream = new BlockStream();
    this.#references = {};
    this.#numFinalNodes = 0;
  }
}

/** What is the same as long as each number names the same. @param {import("./citations.js").Citing} citing */
function keyOf({ numbers, isChecked }) {
  return `${isChecked} ${[...numbers].map(([number, { answer }]) => `${number}:${answer}`).join(" ")}`;
}

/**
 * @param {Node[]} nodes
 * @param {boolean} isFinal nothing will be added to them
 */
function draw(nodes, isFinal) {
  for (const node of nodes) {
    if (!(node instanceof Element)) continue;
    drawerOf(node)?.draw(isFinal);
    for (const inner of node.querySelectorAll(DRAWN)) drawerOf(inner)?.draw(isFinal);
  }
}
