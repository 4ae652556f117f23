// @ts-check
/**
 * <side-panel>: what belongs to the chat and stands beside it, on phones above it; one thing at a
 * time. Escape and the button close it and give the focus back to what opened it.
 * Event: "closed": what was shown is gone, perhaps for something else.
 */

import { find, setText } from "./dom.js";

export class SidePanel extends HTMLElement {
  /** @type {HTMLElement} */
  body = find(this, ".side__body");
  /** @type {HTMLElement} */
  heading = find(this, "h2");

  /** @type {HTMLElement | null} */
  #opener = null;

  connectedCallback() {
    find(this, "[data-close]").addEventListener("click", () => this.close());
    this.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      event.stopPropagation(); // it would stop an answer
      this.close();
    });
  }

  get isOpen() {
    return !this.hidden;
  }

  /** Whether it covers the whole window, as on phones. */
  get isSheet() {
    return matchMedia("(max-width: 48rem)").matches;
  }

  /**
   * Show something, in place of what was shown.
   * @param {string} title
   * @param {Node} content
   * @param {HTMLElement | null} [opener] gets the focus back
   */
  open(title, content, opener = null) {
    if (this.isOpen) this.dispatchEvent(new CustomEvent("closed"));
    setText(this.heading, title);
    this.body.replaceChildren(content);
    this.body.scrollTop = 0;
    this.hidden = false;
    document.documentElement.dataset.side = "open";
    if (opener) this.#opener = opener;
    this.heading.focus({ preventScroll: true });
  }

  close() {
    if (this.hidden) return;
    this.hidden = true;
    delete document.documentElement.dataset.side;
    this.body.replaceChildren();
    if (this.#opener?.isConnected) this.#opener.focus({ preventScroll: true });
    this.#opener = null;
    this.dispatchEvent(new CustomEvent("closed"));
  }
}

customElements.define("side-panel", SidePanel);
