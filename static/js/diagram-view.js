// @ts-check
/** A diagram in its frame: the source while it is written and where it is wrong, else the picture. */

import { barButton, languageOf, scrollable, setAttributes } from "./code-view.js";
import { element, find, setDrawer, setText } from "./dom.js";
import { gettext } from "./i18n.js";

const THEMES = /** @type {const} */ (["light", "dark"]);

/** @param {Element} code */
export function isDiagram(code) {
  return languageOf(/** @type {HTMLElement} */ (code)) === "mermaid";
}

/**
 * Put a frame around the `code` of a `pre`.
 * @param {HTMLElement} code
 */
export function frameDiagram(code) {
  const pre = /** @type {HTMLElement} */ (code.parentElement);
  const frame = element("div", { class: "code diagram", dir: "ltr" }, [
    element("div", { class: "code__bar" }, [
      element("span", { class: "code__language" }, [gettext("diagram")]),
      element("span", { class: "code__actions" }, [
        barButton("show-source", "workflow", gettext("Show the source"), { "aria-pressed": "false", hidden: "" }),
        barButton("download-diagram", "download", gettext("Download"), { hidden: "" }),
        barButton("copy-code", "copy", gettext("Copy"), {}, true),
      ]),
    ]),
    element("p", { class: "diagram__problem", hidden: "" }),
    element("div", { class: "diagram__picture", ...scrollable(gettext("Diagram")), hidden: "" }),
  ]);
  pre.replaceWith(frame);
  frame.append(pre);
  setAttributes(pre, scrollable(gettext("Source of the diagram")));
  new DiagramView(frame, code.textContent ?? "");
}

export class DiagramView {
  /** @type {string | null} */
  #drawn = null;

  /**
   * @param {HTMLElement} frame
   * @param {string} text
   */
  constructor(frame, text) {
    this.frame = frame;
    this.text = text;
    setDrawer(frame, this);
  }

  get source() {
    return this.text.replace(/\n$/, "");
  }

  /** @param {DiagramView} other */
  take(other) {
    this.text = other.text;
    return true;
  }

  /** @param {boolean} isFinal half a diagram is none */
  draw(isFinal) {
    setText(find(this.frame, "code"), this.text);
    if (!isFinal || this.text === this.#drawn) return;
    this.#drawn = this.text;
    this.#show(this.text);
  }

  /** @param {string} text */
  async #show(text) {
    try {
      const { drawDiagram } = await import("./diagram-renderer.js");
      const pictures = [];
      for (const theme of THEMES) pictures.push(imageOf(theme, await drawDiagram(text, theme)));
      if (text === this.#drawn) this.#showPictures(pictures);
    } catch (error) {
      if (text === this.#drawn) this.#showProblem(/** @type {Error} */ (error).message);
    }
  }

  /** @param {HTMLElement[]} pictures */
  #showPictures(pictures) {
    find(this.frame, ".diagram__picture").replaceChildren(...pictures);
    for (const button of this.frame.querySelectorAll(".bar-button[hidden]")) button.removeAttribute("hidden");
    find(this.frame, ".diagram__problem").hidden = true;
    this.showSource(false);
  }

  /** @param {string} reason */
  #showProblem(reason) {
    const problem = find(this.frame, ".diagram__problem");
    setText(problem, `${gettext("This diagram could not be drawn.")} ${reason.split("\n")[0]}`);
    problem.hidden = false;
    find(this.frame, ".diagram__picture").hidden = true;
    find(this.frame, "pre").hidden = false;
  }

  /** @param {boolean} isSource */
  showSource(isSource) {
    find(this.frame, ".diagram__picture").hidden = isSource;
    find(this.frame, "pre").hidden = !isSource;
    find(this.frame, "[data-show-source]").setAttribute("aria-pressed", String(isSource));
  }
}

/**
 * Both are there, and the style sheet shows one: a change of theme draws nothing anew.
 * @param {string} theme
 * @param {import("./diagram-renderer.js").Picture} picture
 */
function imageOf(theme, { svg, width, height }) {
  const src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const size = { width: String(width), height: String(height) };
  return element("img", { class: `diagram__${theme}`, src, alt: gettext("Diagram; its source can be shown"), ...size });
}
