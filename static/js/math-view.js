// @ts-check
/**
 * A formula, drawn by KaTeX once that is there; until then, and where it is wrong, its source. While
 * its end is still being written, what there is so far is drawn, so that nothing jumps at the end.
 */

import { element, setDrawer } from "./dom.js";
import { Lazy } from "./lazy.js";
import { drawableSoFar } from "./math-syntax.js";

const MAX_CHARS = 5_000;
/** Nothing of a formula may load, link, run or take the page; `\def` and sizes end somewhere. */
const OPTIONS = { trust: false, strict: "ignore", throwOnError: true, maxExpand: 300, maxSize: 20 };

const katex = new Lazy(async () => {
  const style = element("link", { rel: "stylesheet", href: import.meta.resolve("#vendor/katex/katex.css") });
  const isStyled = new Promise((resolve) => ["load", "error"].forEach((end) => style.addEventListener(end, resolve)));
  document.head.append(style);
  const [library] = await Promise.all([import("#vendor/katex/katex.js"), isStyled]);
  return library.default;
});

/** @param {HTMLElement} root with the source as its text */
export function frameMath(root) {
  new MathView(root, root.textContent ?? "", root.matches(".math--display"));
}

class MathView {
  /** @type {string | null} */
  #drawn = null;
  #isFinal = false;

  /**
   * @param {HTMLElement} root
   * @param {string} tex
   * @param {boolean} isDisplay
   */
  constructor(root, tex, isDisplay) {
    this.root = root;
    this.tex = tex;
    this.isDisplay = isDisplay;
    setDrawer(root, this);
    if (isDisplay) root.setAttribute("tabindex", "0"); // it may scroll
  }

  /** As it would be written in markdown. */
  get source() {
    return this.isDisplay ? `$$${this.tex}$$` : `$${this.tex}$`;
  }

  /** @param {MathView} other */
  take(other) {
    if (other.isDisplay !== this.isDisplay) return false;
    this.tex = other.tex;
    return true;
  }

  /** @param {boolean} isFinal */
  draw(isFinal) {
    this.#isFinal = isFinal;
    const library = katex.get(() => this.draw(this.#isFinal));
    if (!library || this.tex === this.#drawn) return;
    const { drawn, tex } = this.#rendered(library, isFinal);
    if (!drawn && !isFinal && this.#drawn !== null) return; // half a command: what was right stays
    this.root.toggleAttribute("data-wrong", !drawn);
    this.root.replaceChildren(drawn ?? tex);
    this.#drawn = tex;
  }

  /**
   * The formula and the source of what is drawn of it: a beginning, while more may follow.
   * @param {any} library
   * @param {boolean} isFinal
   */
  #rendered(library, isFinal) {
    const drawn = document.createElement("span");
    const sources = isFinal ? [this.tex] : drawableSoFar(this.tex);
    for (const tex of this.tex.length > MAX_CHARS ? [] : sources) {
      try {
        library.render(tex, drawn, { ...OPTIONS, displayMode: this.isDisplay });
        return { drawn, tex };
      } catch {
        continue; // a model writes TeX that KaTeX does not know: then its source is the truth
      }
    }
    return { drawn: null, tex: this.tex };
  }
}
