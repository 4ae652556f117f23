// @ts-check
/**
 * <settings-search>: finds a setting by its name and by what else people call it. The links stand in
 * the page already; typing chooses which of them are seen, in place of the list of pages.
 */

import { find, isComposing, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";
import { matches } from "./word-search.js";

export class SettingsSearch extends HTMLElement {
  /** @type {HTMLInputElement} */
  #input = find(this, "input");
  #list = find(this, "ul");
  #none = find(this, ".settings__none");
  /** @type {HTMLAnchorElement[]} */
  #links = [...this.querySelectorAll("a")];
  #texts = this.#links.map((link) => `${link.textContent} ${link.dataset.words}`);

  connectedCallback() {
    this.hidden = false;
    this.#input.addEventListener("input", () => this.#show());
    this.addEventListener("keydown", (event) => this.#keyPressed(event));
    this.#list.addEventListener("click", () => this.#clear()); // perhaps it is of this very page
    this.#show();
  }

  get #seen() {
    return this.#links.filter((link) => !link.closest("li")?.hidden);
  }

  /** What is typed chooses; with nothing typed the pages are listed as before. */
  #show() {
    const wanted = this.#input.value.trim();
    matches(wanted, this.#texts).forEach((isFound, place) => {
      const row = this.#links[place].closest("li");
      if (row) row.hidden = !isFound;
    });
    const { length } = this.#seen;
    this.#list.hidden = length === 0;
    this.toggleAttribute("data-searching", wanted !== "");
    const found = length
      ? ngettext("%(n)s setting found", "%(n)s settings found", length)
      : gettext("No setting is called that.");
    setText(this.#none, wanted ? found : "");
    this.#none.classList.toggle("visually-hidden", length > 0);
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (isComposing(event)) return;
    const seen = this.#seen;
    const place = seen.indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement));
    if (event.key === "ArrowDown") seen[Math.min(place + 1, seen.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (seen[place - 1] ?? this.#input).focus();
    else if (event.key === "Escape" && this.#input.value) this.#goBack();
    else if (event.key === "Enter" && place < 0) seen[0]?.click();
    else return;
    event.preventDefault();
  }

  #goBack() {
    this.#clear();
    this.#input.focus();
  }

  /** The list makes room for the pages again. */
  #clear() {
    this.#input.value = "";
    this.#show();
  }
}

customElements.define("settings-search", SettingsSearch);
