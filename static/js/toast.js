// @ts-check
/** <toast-region>: short news that need no answer. It is a live region, so they are also heard. */

import { element, icon } from "./dom.js";

const SHOWN_MS = 6000;

export class ToastRegion extends HTMLElement {
  /** @param {string} text */
  show(text) {
    const close = element("button", { type: "button", class: "icon-button", "aria-label": "Dismiss" });
    close.append(icon("x"));
    const toast = element("div", { class: "toast" }, [element("span", {}, [text]), close]);
    close.addEventListener("click", () => toast.remove());
    let timer = setTimeout(() => toast.remove(), SHOWN_MS);
    toast.addEventListener("pointerenter", () => clearTimeout(timer));
    toast.addEventListener("pointerleave", () => {
      timer = setTimeout(() => toast.remove(), SHOWN_MS);
    });
    this.append(toast);
  }
}

customElements.define("toast-region", ToastRegion);
