// @ts-check
/**
 * A list above the composer that a sign in the text calls, and that narrows as one types. Arrow keys
 * choose, Enter and Tab take, Escape closes. The focus stays in the box (aria-activedescendant).
 *
 * @template Item
 * @typedef {object} Kind what a list is for
 * @property {string} id
 * @property {string} label
 * @property {(text: string, caret: number) => Call | null} callAt the sign in front of the caret
 * @property {(query: string) => Item[] | Promise<Item[]>} find
 * @property {(item: Item) => HTMLElement} row with role option and an id
 * @property {(query: string) => HTMLElement | null} nothing what is shown in the place of rows
 * @property {(item: Item, call: Call & {to: number}) => void} take
 */

/** @typedef {{from: number, query: string}} Call where the sign stands, and what follows it */

import { insertText } from "./caret.js";
import { element, isComposing } from "./dom.js";

/** @template Item */
export class CaretMenu {
  /** @type {Item[]} */
  #shown = [];
  #active = 0;
  #query = "";
  #asked = 0;
  /** @type {number | null} where the sign stands that Escape has closed */
  #closedAt = null;

  /**
   * @param {HTMLTextAreaElement} input
   * @param {Kind<Item>} kind
   */
  constructor(input, kind) {
    this.input = input;
    this.kind = kind;
    this.list = element("ul", { id: kind.id, class: "caret-menu", role: "listbox", "aria-label": kind.label });
    this.list.hidden = true;
    input.closest("form")?.append(this.list);
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("input", () => this.changed());
    input.addEventListener("click", () => this.changed());
    input.addEventListener("blur", () => this.#close());
    // In front of the composer's own keys: Enter takes here, it does not send.
    input.addEventListener("keydown", (event) => this.#keyPressed(event), { capture: true });
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the focus
    this.list.addEventListener("click", (event) => this.#clicked(event));
  }

  get #isOpen() {
    return !this.list.hidden;
  }

  /** The text or the caret is another one: show what it calls. */
  async changed() {
    const asked = ++this.#asked;
    const call = this.#wanted();
    if (!call) return this.#close();
    const found = this.kind.find(call.query);
    const items = found instanceof Promise ? await found : found;
    if (asked === this.#asked) this.#show(items, call.query);
  }

  /** The sign that the list is to be shown for. */
  #wanted() {
    const call = this.#call();
    if (!call) this.#closedAt = null;
    return call && call.from !== this.#closedAt ? call : null;
  }

  #call() {
    const { value, selectionStart, selectionEnd } = this.input;
    return selectionStart === selectionEnd ? this.kind.callAt(value, selectionStart) : null;
  }

  /**
   * @param {Item[]} items
   * @param {string} query
   */
  #show(items, query) {
    // More may have been found of what is being chosen from.
    const active = query === this.#query ? items.indexOf(this.#shown[this.#active]) : 0;
    this.#shown = items;
    this.#query = query;
    this.#active = Math.max(0, active);
    const nothing = items.length ? null : this.kind.nothing(query);
    this.list.setAttribute("role", nothing ? "list" : "listbox"); // a listbox may hold options alone
    this.list.replaceChildren(...(nothing ? [nothing] : items.map((item) => this.kind.row(item))));
    this.list.hidden = !this.list.childElementCount;
    this.#mark();
  }

  #mark() {
    const rows = [...this.list.querySelectorAll("[role=option]")];
    rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === this.#active)));
    const active = rows[this.#active];
    active?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-controls", this.kind.id);
    if (this.#isOpen && active) this.input.setAttribute("aria-activedescendant", active.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #close() {
    this.#asked++;
    this.#shown = [];
    if (!this.#isOpen) return; // another list may be open
    this.list.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (!this.#isOpen || isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      this.#closedAt = this.#call()?.from ?? null;
      this.#close();
    } else if (!this.#shown.length) {
      return;
    } else if (step) {
      this.#active = (this.#active + step + this.#shown.length) % this.#shown.length;
      this.#mark();
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
      this.#take(this.#shown[this.#active]);
    } else {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** @param {Event} event */
  #clicked(event) {
    const chosen = /** @type {Element} */ (event.target).closest("[role=option]");
    const index = chosen ? [...this.list.querySelectorAll("[role=option]")].indexOf(chosen) : -1;
    if (this.#shown[index]) this.#take(this.#shown[index]);
  }

  /** @param {Item} item */
  #take(item) {
    const call = this.#call();
    const to = this.input.selectionStart;
    this.#close();
    if (call) this.kind.take(item, { ...call, to });
  }
}

/**
 * Put a text in the place of what called, as if it was typed, so that undo brings it back.
 * @param {HTMLTextAreaElement} input
 * @param {{from: number, to: number}} call
 * @param {string} text
 */
export function replaceCall(input, { from, to }, text) {
  input.focus();
  input.setSelectionRange(from, to);
  insertText(input, text);
}
