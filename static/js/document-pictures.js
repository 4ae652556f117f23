// @ts-check
/** A document's pages as pictures: each is fetched when it comes near, and left when it is scrolled by. */

import { pageName } from "./document-places.js";
import { element, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";

const NEAR = "900px 0px";
const MIDDLE = "-45% 0px -55% 0px";

/** @typedef {import("./document-places.js").Page} Page */

export class DocumentPictures extends EventTarget {
  /** @type {Map<Element, AbortController>} */
  #under = new Map();
  #near = new IntersectionObserver((entries) => entries.forEach((entry) => this.#come(entry)), { rootMargin: NEAR });
  #middle = new IntersectionObserver((entries) => this.#pass(entries), { rootMargin: MIDDLE });
  /** The number of the page in the middle of the window. */
  current = 1;

  /**
   * Event: "page" when another page is in the middle.
   * @param {HTMLElement} root
   * @param {Page[]} pages
   * @param {(number: number, width: number) => string} url of a page's picture, some pixels wide
   */
  constructor(root, pages, url) {
    super();
    this.root = root;
    this.pages = pages;
    this.url = url;
    const sheets = pages.map((page, index) => this.#sheet(page, index));
    root.replaceChildren(...sheets);
    for (const sheet of sheets) {
      this.#near.observe(sheet);
      this.#middle.observe(sheet);
    }
  }

  /** @param {Page} page @param {number} index */
  #sheet(page, index) {
    const [, , label, width, height] = page;
    const paper = element("div", { class: "sheet__paper" });
    if (width && height) paper.style.aspectRatio = `${width} / ${height}`;
    const words = this.pages.length > 1 || label ? pageName(this.pages, index) : "";
    const caption = element("figcaption", { class: "sheet__name", dir: "auto" }, [words]);
    return element("figure", { class: "sheet", "data-page": String(index + 1), tabindex: "-1" }, [paper, caption]);
  }

  /** @param {number} number */
  sheet(number) {
    return /** @type {HTMLElement | null} */ (this.root.querySelector(`[data-page="${number}"]`));
  }

  /**
   * Draw rectangles over pages.
   * @param {{number: number, boxes: number[][]}[]} marked in points from a page's top left
   * @returns {HTMLElement | null} the first one
   */
  mark(marked) {
    for (const old of this.root.querySelectorAll(".sheet__mark")) old.remove();
    for (const { number, boxes } of marked) {
      const [, , , width, height] = this.pages[number - 1];
      const paper = this.sheet(number)?.firstElementChild;
      if (!paper || !width || !height) continue;
      for (const [x0, y0, x1, y1] of boxes) {
        const box = element("span", { class: "sheet__mark", "aria-hidden": "true" });
        box.style.left = `${(100 * x0) / width}%`;
        box.style.top = `${(100 * y0) / height}%`;
        box.style.width = `${(100 * (x1 - x0)) / width}%`;
        box.style.height = `${(100 * (y1 - y0)) / height}%`;
        paper.append(box);
      }
    }
    return /** @type {HTMLElement | null} */ (this.root.querySelector(".sheet__mark"));
  }

  /** @param {IntersectionObserverEntry} entry */
  #come({ target, isIntersecting }) {
    if (isIntersecting) this.#fetch(/** @type {HTMLElement} */ (target));
    else this.#under.get(target)?.abort();
  }

  /** @param {HTMLElement} sheet */
  async #fetch(sheet) {
    const paper = /** @type {HTMLElement} */ (sheet.firstElementChild);
    if (this.#under.has(sheet) || paper.querySelector("img")) return;
    const number = Number(sheet.dataset.page);
    const leaving = new AbortController();
    this.#under.set(sheet, leaving);
    paper.querySelector(".sheet__problem")?.remove();
    try {
      const width = Math.ceil(paper.clientWidth * devicePixelRatio);
      paper.prepend(await this.#picture(number, width, leaving.signal));
    } catch (error) {
      if (!leaving.signal.aborted) this.#fail(sheet, paper, /** @type {Error} */ (error).message);
    } finally {
      this.#under.delete(sheet);
    }
  }

  /** @param {number} number @param {number} width @param {AbortSignal} signal */
  async #picture(number, width, signal) {
    const response = await fetch(this.url(number, width), { signal });
    if (!response.ok) throw new Error((await response.json().catch(() => ({}))).error?.message ?? gettext("This page cannot be shown."));
    const image = /** @type {HTMLImageElement} */ (element("img", { class: "sheet__picture", alt: pageName(this.pages, number - 1) }));
    image.src = URL.createObjectURL(await response.blob());
    await image.decode();
    URL.revokeObjectURL(image.src);
    return image;
  }

  /** @param {HTMLElement} sheet @param {HTMLElement} paper @param {string} words */
  #fail(sheet, paper, words) {
    const again = element("button", { type: "button", class: "button" }, [icon("rotate-cw"), gettext("Try again")]);
    again.addEventListener("click", () => this.#fetch(sheet));
    const said = element("p", { role: "status" });
    paper.prepend(element("div", { class: "sheet__problem" }, [said, again]));
    setText(said, words);
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #pass(entries) {
    const entry = entries.findLast(({ isIntersecting }) => isIntersecting);
    if (!entry) return;
    this.current = Number(/** @type {HTMLElement} */ (entry.target).dataset.page);
    this.dispatchEvent(new Event("page"));
  }
}
