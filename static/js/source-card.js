// @ts-check
/**
 * The card of a source: what it says, at whichever link to it is pointed at, has the focus or was touched.
 * What an answer was written from is read once.
 */

import { element, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { placePopover } from "./popover.js";
import { placeOf } from "./sources.js";

const LINGER_MS = 250;
const HOVER_MS = 120; // who only passes by is not asked to read
const ID = "source-card";
const GONE = gettext("This passage was deleted, or is no longer shared with you.");

/** @typedef {import("./sources.js").Excerpt & {text: string | null}} Told */

export class SourceCard {
  /** @type {Map<string, Promise<Told[]>>} answer → what it was written from */
  #read = new Map();
  /** @type {HTMLElement | null} */
  #link = null;
  #timer = 0;
  /** Where the link stood in the window when its card was opened. */
  #place = new DOMRect();

  /**
   * @param {HTMLElement} list of the messages
   * @param {(answer: string) => Promise<Told[]>} load
   */
  constructor(list, load) {
    this.load = load;
    this.card = element("div", { class: "popover source-card", id: ID, popover: "manual", role: "group", "aria-label": gettext("Source") });
    list.after(this.card);
    for (const root of [list, this.card]) {
      root.addEventListener("pointerout", (event) => this.#left(event));
      root.addEventListener("focusout", (event) => this.#left(event));
    }
    this.card.addEventListener("pointerenter", () => clearTimeout(this.#timer));
    document.addEventListener("keydown", (event) => this.#keyPressed(event), { capture: true });
    document.addEventListener("pointerdown", (event) => this.#isElsewhere(event.target) && this.hide());
    document.addEventListener("scroll", () => this.#scrolled(), { capture: true, passive: true });
  }

  get isOpen() {
    return this.card.matches(":popover-open");
  }

  /**
   * @param {HTMLElement} link
   * @param {string} [cause] the type of the event
   */
  async show(link, cause = "") {
    clearTimeout(this.#timer);
    if (this.#link === link && this.isOpen) return;
    if (cause === "pointerover") {
      this.#timer = window.setTimeout(() => link.matches(":hover") && this.show(link), HOVER_MS);
      return;
    }
    this.hide();
    this.#link = link;
    const { answer = "", excerpt = "" } = link.dataset;
    this.card.replaceChildren(...contents(null, link));
    this.#open(link);
    try {
      const told = await this.#told(answer, Number(excerpt));
      if (this.#link === link) this.card.replaceChildren(...contents(told, link));
    } catch (error) {
      if (this.#link === link) this.card.replaceChildren(element("p", { role: "alert" }, [/** @type {Error} */ (error).message]));
    }
    if (this.#link === link) placePopover(this.card, link);
  }

  hide() {
    clearTimeout(this.#timer);
    this.#link?.removeAttribute("aria-describedby");
    this.#link = null;
    if (this.isOpen) this.card.hidePopover();
  }

  /** @param {HTMLElement} link */
  #open(link) {
    link.setAttribute("aria-describedby", ID);
    this.#place = link.getBoundingClientRect();
    this.card.showPopover();
    placePopover(this.card, link);
  }

  /**
   * @param {string} answer
   * @param {number} number
   */
  async #told(answer, number) {
    if (!this.#read.has(answer)) this.#read.set(answer, this.load(answer));
    try {
      const told = (await /** @type {Promise<Told[]>} */ (this.#read.get(answer))).find((one) => one.number === number);
      if (told) return told;
    } catch (error) {
      this.#read.delete(answer);
      throw error;
    }
    this.#read.delete(answer); // it is being written still
    throw new Error(GONE);
  }

  /** @param {Event & {relatedTarget?: any}} event */
  #left(event) {
    if (!this.#link || !this.#isElsewhere(event.relatedTarget)) return;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      if (!this.#link?.matches(":hover, :focus-visible")) this.hide();
    }, LINGER_MS);
  }

  /** The page scrolls by itself, too, when its foot grows: the card goes only where its link has gone. */
  #scrolled() {
    if (!this.#link) return;
    const { top, left, height } = this.#link.getBoundingClientRect();
    const moved = Math.hypot(top - this.#place.top, left - this.#place.left);
    if (!height || moved > height) this.hide();
    else placePopover(this.card, this.#link);
  }

  /** @param {EventTarget | null | undefined} target */
  #isElsewhere(target) {
    return !(target instanceof Node && (this.card.contains(target) || this.#link?.contains(target)));
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (event.key !== "Escape" || !this.isOpen) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // it would stop an answer
    this.hide();
  }
}

/**
 * @param {Told | null} told null as long as it is read
 * @param {HTMLElement} link
 */
function contents(told, link) {
  if (!told) return [element("p", { class: "source-card__note", "aria-busy": "true" }, [gettext("Opening")])];
  const { page, heading } = placeOf(told);
  const place = [page, heading].filter(Boolean).join(" · ");
  const open = element("a", { class: "source-card__open", href: link.getAttribute("href") ?? "", target: "_blank", rel: "noopener" });
  setText(open, gettext("Open in the document"));
  const text = told.text === null
    ? element("p", { class: "source-card__note" }, [GONE])
    : element("blockquote", { class: "source-card__text", dir: "auto" }, [told.text.trim().replace(/\n{2,}/g, "\n")]);
  return [
    element("p", { class: "source-card__head" }, [element("span", { class: "source__number" }, [String(told.number)]), element("strong", { dir: "auto" }, [told.name])]),
    ...(place ? [element("p", { class: "source-card__place", dir: "auto" }, [place])] : []),
    text,
    ...(told.text === null ? [] : [open]),
  ];
}
