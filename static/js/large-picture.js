// @ts-check
/** A picture as large as the window has room for, over the page. */

import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";

/** @param {HTMLAnchorElement} link to the large picture, around the small one */
export function showLarge(link) {
  const small = link.querySelector("img");
  const [width, height, alt] = ["width", "height", "alt"].map((name) => small?.getAttribute(name) ?? "");
  const large = element("img", { class: "large-picture__picture", src: link.href, width, height, alt });
  large.style.aspectRatio = `${width} / ${height}`;
  const words = gettext("Close");
  const close = element("button", { class: "icon-button", "aria-label": words, title: words }, [icon("x")]);
  const dialog = /** @type {HTMLDialogElement} */ (element("dialog", { class: "large-picture", "aria-label": gettext("Picture") }, [
    element("form", { method: "dialog" }, [close]), large,
  ]));
  // Beside the picture is the page behind it.
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
