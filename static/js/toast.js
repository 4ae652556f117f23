// @ts-check
/** <toast-region>: short news that need no answer. It is a live region, so they are also heard. */

import { element, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";

const SHOWN_MS = 6000;

export class ToastRegion extends HTMLElement {
  /**
   * @param {string} text
   * @param {{action?: string, run?: () => unknown, shownMs?: number}} [more] something to do about it. Where that
   *   fails, the toast says why, and it can be tried again
   */
  show(text, { action, run, shownMs = SHOWN_MS } = {}) {
    const close = element("button", { type: "button", class: "icon-button", "aria-label": gettext("Dismiss") });
    close.append(icon("x"));
    const words = element("span", {}, [text]);
    const toast = element("div", { class: "toast" }, [words, close]);
    close.addEventListener("click", () => toast.remove());
    if (action) {
      const button = element("button", { type: "button", class: "toast__action" }, [action]);
      let isRunning = false;
      button.addEventListener("click", async () => {
        if (isRunning) return;
        isRunning = true;
        stay();
        try {
          await run?.();
          toast.remove();
        } catch (error) {
          setText(words, /** @type {Error} */ (error).message);
          setText(button, gettext("Try again"));
          if (!toast.matches(":hover, :focus-within")) leave();
        }
        isRunning = false;
      });
      close.before(button);
    }
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
