// @ts-check
/** A document's text: a window of it is loaded around a place, and more as the reader comes near its ends. */

import { countCodePoints, dropCodePoints } from "./code-points.js";
import { charsBeforeLine, segments, wholeLines, withTables } from "./document-places.js";
import { element, setText } from "./dom.js";
import { gettext } from "./i18n.js";

const PIECE_CHARS = 20_000;
const BEFORE_CHARS = 6_000;
const NEAR = "1200px 0px";

/** @typedef {import("./document-places.js").Page} Page */

export class DocumentText {
  #start = 0;
  #end = 0;
  #isLoading = false;
  #generation = 0;
  #before = sentinel("before");
  #after = sentinel("after");
  #body = element("div", { class: "viewer__words" });
  #watch;

  /**
   * @param {HTMLElement} root
   * @param {{numChars: number, pages: Page[], passage: import("./document-places.js").Passage | null,
   *   isCode: boolean, read: (start: number, end: number) => Promise<{start: number, text: string}>,
   *   scroller?: HTMLElement}} text `scroller` where it is not the window that scrolls
   */
  constructor(root, text) {
    this.root = root;
    this.text = text;
    this.#watch = new IntersectionObserver((entries) => this.#near(entries), { root: text.scroller ?? null, rootMargin: NEAR });
    this.#body.classList.toggle("viewer__words--code", text.isCode);
    root.replaceChildren(this.#before, this.#body, this.#after);
  }

  /** The first element of the passage that is drawn. */
  get mark() {
    return /** @type {HTMLElement | null} */ (this.#body.querySelector("mark"));
  }

  /**
   * Draw what is around a character, in place of what was there.
   * @param {number} place
   */
  async show(place) {
    this.#watch.disconnect();
    const generation = ++this.#generation;
    const end = Math.max(place, this.text.passage?.end ?? 0);
    this.#start = this.#end = Math.max(0, place - BEFORE_CHARS);
    this.#body.replaceChildren();
    setText(this.#after, gettext("Loading"));
    this.#isLoading = true;
    const piece = await this.#read(this.#start, Math.min(end, place + 2 * PIECE_CHARS) + PIECE_CHARS);
    if (!piece || generation !== this.#generation) return;
    if (piece.start) {
      const skipped = Math.min(charsBeforeLine(piece.text), place - piece.start);
      piece.start += skipped;
      piece.text = dropCodePoints(piece.text, skipped);
    }
    this.#start = this.#end = piece.start;
    this.#append(piece);
    this.#settle();
  }

  /** The number of the page in the middle of the window; null before the first name of one. */
  get current() {
    const names = /** @type {NodeListOf<HTMLElement>} */ (this.#body.querySelectorAll("[data-page]"));
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 1;
    const line = isAtEnd ? innerHeight : innerHeight / 2;
    const above = [...names].findLast((name) => name.getBoundingClientRect().top < line);
    return above ? Number(above.dataset.page) : null;
  }

  /** @param {number} page its number */
  label(page) {
    return /** @type {HTMLElement | null} */ (this.#body.querySelector(`[data-page="${page}"]`));
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #near(entries) {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting || this.#isLoading) continue;
      if (target === this.#after) this.#more();
      else this.#earlier();
    }
  }

  async #more() {
    if (this.#end >= this.text.numChars) return;
    const piece = await this.#next(this.#end, this.#end + PIECE_CHARS);
    if (!piece) return;
    this.#append(piece);
    this.#settle();
  }

  async #earlier() {
    if (this.#start <= 0) return;
    const from = Math.max(0, this.#start - PIECE_CHARS);
    const piece = await this.#next(from, this.#start);
    if (!piece) return;
    const skipped = from ? charsBeforeLine(piece.text) : 0;
    const text = dropCodePoints(piece.text, skipped);
    this.#start = from + skipped;
    const scroller = this.text.scroller ?? document.documentElement;
    const height = scroller.scrollHeight;
    this.#body.prepend(this.#drawn({ start: this.#start, text }));
    scroller.scrollBy({ top: scroller.scrollHeight - height, behavior: "instant" });
    this.#settle();
  }

  /** @param {number} start @param {number} end */
  async #next(start, end) {
    this.#isLoading = true;
    const generation = this.#generation;
    const piece = await this.#read(start, end);
    return generation === this.#generation ? piece : null;
  }

  /** @param {number} start @param {number} end */
  async #read(start, end) {
    try {
      return await this.text.read(start, Math.min(end, this.text.numChars));
    } catch (error) {
      this.#fail(/** @type {Error} */ (error).message, start);
      return null;
    }
  }

  /** @param {{start: number, text: string}} piece */
  #append(piece) {
    const isLast = piece.start + countCodePoints(piece.text) >= this.text.numChars;
    const text = isLast ? piece.text : wholeLines(piece.text);
    this.#body.append(this.#drawn({ start: piece.start, text }));
    this.#end = piece.start + countCodePoints(text);
  }

  /** @param {{start: number, text: string}} piece */
  #drawn(piece) {
    const found = segments(piece, this.text.pages, this.text.passage);
    return element("div", { class: "viewer__piece" }, (this.text.isCode ? found : withTables(found)).map(drawnBlock));
  }

  /** What is near enough now is asked for again: an observer tells changes only. */
  #settle() {
    this.#isLoading = false;
    setText(this.#after, "");
    this.#before.hidden = this.#start <= 0;
    this.#after.hidden = this.#end >= this.text.numChars;
    this.#watch.disconnect();
    this.#watch.observe(this.#before);
    this.#watch.observe(this.#after);
  }

  /** @param {string} words @param {number} start */
  #fail(words, start) {
    const again = element("button", { type: "button", class: "small-button" }, [gettext("Try again")]);
    again.addEventListener("click", () => (this.#body.childElementCount ? this.#settle() : this.show(start)));
    this.#watch.disconnect();
    this.#isLoading = false;
    this.#after.hidden = false;
    this.#after.replaceChildren(words, " ", again);
  }
}

/** @param {string} name */
function sentinel(name) {
  return element("p", { class: "viewer__more", "data-more": name, role: "status" });
}

/** @param {import("./document-places.js").Block} block */
function drawnBlock(block) {
  if (block.kind === "table") return drawnTable(block);
  const { kind, text, page } = block;
  if (kind === "label") return element("h2", { class: "viewer__page-name", "data-page": String(page), dir: "auto" }, [text]);
  return kind === "mark" ? marked(text) : text;
}

/** @param {{rows: import("./document-places.js").Row[], hasHead: boolean}} table */
function drawnTable({ rows, hasHead }) {
  const drawn = rows.map(({ cells, isMarked }, index) => {
    const isHead = hasHead && index === 0;
    const inside = cells.map((cell) => element(isHead ? "th" : "td", isHead ? { scope: "col", dir: "auto" } : { dir: "auto" }, [isMarked && cell ? marked(cell) : cell]));
    return element("tr", isMarked ? { "data-marked": "" } : {}, inside);
  });
  const table = element("table", {}, [element("tbody", {}, drawn)]);
  return element("div", { class: "viewer__table", role: "group", tabindex: "0", "aria-label": gettext("Table") }, [table]);
}

/** @param {string} text */
function marked(text) {
  return element("mark", { tabindex: "-1" }, [text]);
}
