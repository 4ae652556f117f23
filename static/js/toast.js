// @ts-check
/** <toast-region>: short news that need no answer. It is a live region, so they are also heard. */

import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";

const SHOWN_MS = 6000;

export class ToastRegion extends HTMLElement {
  /**
   * @param {string} text
   * @param {{action?: string, run?: () => void, shownMs?: number}} [more] something to do about it
   */
  show(text, { action, run, shownMs = SHOWN_MS } = {}) {
    const close = element("button", { type: "button", class: "icon-button", "aria-label": gettext("Dismiss") });
    close.append(icon("x"));
    const toast = element("div", { class: "toast" }, [element("span", {}, [text]), close]);
    if (action) {
      const button = element("button", { type: "button", class: "toast__action" }, [action]);
      button.addEventListener("click", () => {
        toast.remove();
        run?.();
      });
      close.before(button);
    }
    close.addEventListener("click", () => toast.remove());
    let timer = 0;
    const stay = () => clearTimeout(timer);
    const leave = () => {
      stay();
      timer = window.setTimeout(() => toast.remove(), shownMs);
    };
    leave();
    for (const name of ["pointerenter", "focusin"]) toast.addEventListener(name, stay);
    for (const name of ["pointerleave", "focusout"]) toast.addEventListener(name, leave);
    this.append(toast);
  }
}

customElements.define("toast-region", ToastRegion);
