// @ts-check
/** Menus that buttons of many things share: opened at a button, walked by arrows. */

import { placePopover } from "./popover.js";

export class Menu {
  #opener = /** @type {HTMLElement | null} */ (null);

  /**
   * @param {HTMLElement} root a popover with role menu
   * @param {(item: HTMLElement) => void} chosen
   */
  constructor(root, chosen) {
    this.root = root;
    root.addEventListener("click", (event) => {
      const item = /** @type {HTMLElement | null} */ (
        /** @type {Element} */ (event.target).closest("[role=menuitem]")
      );
      if (!item) return;
      root.hidePopover();
      chosen(item);
    });
    root.addEventListener("keydown", (event) => this.#keyPressed(event));
    root.addEventListener("toggle", (event) => {
      const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
      this.#opener?.setAttribute("aria-expanded", String(isOpen));
    });
  }

  /** @param {HTMLElement} opener */
  open(opener) {
    this.#opener = opener;
    this.root.showPopover({ source: opener });
    placePopover(this.root, opener);
    // At once, not at the toggle event: that one comes later, and the arrow key of a quick hand before it.
    this.#items[0]?.focus();
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    const items = this.#items;
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    items.at(to % items.length)?.focus();
  }

  get #items() {
    const items = /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("[role=menuitem]"));
    return [...items].filter((item) => item.offsetParent !== null);
  }
}
