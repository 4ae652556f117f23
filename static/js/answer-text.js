// @ts-check
/**
 * The text of an answer: plain words until what draws markdown is there. That is more code than all else
 * together, and an empty chat needs none of it. Where an answer is on the page from the start, prose-here.js
 * has brought it before.
 */

import { element, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { withoutTags } from "./text-safety.js";

/** @typedef {typeof import("./prose.js").Prose} Drawing */

/** @type {Drawing | null} */
let drawing = null;
/** @type {Promise<void> | null} */
let coming = null;
let isTold = false;

/** @param {Drawing} Prose */
export function drawWith(Prose) {
  drawing = Prose;
}

/** Resolves also where it could not be loaded; the next wish tries again. */
export async function loadProse() {
  coming ??= import("./prose.js").then(({ Prose }) => drawWith(Prose), () => void (coming = null));
  await coming;
}

export class AnswerText {
  /** @type {import("./prose.js").Prose | null} */
  #prose = null;
  /** @type {Parameters<import("./prose.js").Prose["update"]>} */
  #shown = ["", false];
  #isWaiting = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /** @param {Parameters<import("./prose.js").Prose["update"]>} shown */
  update(...shown) {
    this.#shown = shown;
    if (drawing) this.#draw(drawing);
    else this.#waitWith(withoutTags(shown[0]));
  }

  /** @param {Drawing} Prose */
  #draw(Prose) {
    this.#prose ??= new Prose(this.root);
    this.#prose.update(...this.#shown);
  }

  /** @param {string} words */
  async #waitWith(words) {
    const plain = this.root.firstElementChild ?? this.root.appendChild(element("p", { class: "message__text" }));
    setText(plain, words);
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    await loadProse();
    this.#isWaiting = false;
    if (drawing) this.#draw(drawing);
    else this.#lament();
  }

  /** Once for all that wait. */
  #lament() {
    if (isTold) return;
    isTold = true;
    const detail = gettext("The server cannot be reached. Answers are shown as plain text.");
    this.root.dispatchEvent(new CustomEvent("undrawn", { bubbles: true, detail }));
  }
}
