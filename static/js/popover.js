// @ts-check
/** Native popovers know how to open, close and give the focus back; this tells them where to stand. */

const GAP_PX = 6;
const EDGE_PX = 8;

/**
 * Place a popover at the element that opened it, inside the window.
 * @param {HTMLElement} popover
 * @param {Element} opener
 */
export function placePopover(popover, opener) {
  const at = opener.getBoundingClientRect();
  const { width, height } = popover.getBoundingClientRect();
  const fitsBelow = at.bottom + GAP_PX + height < innerHeight - EDGE_PX;
  const y = fitsBelow ? at.bottom + GAP_PX : Math.max(EDGE_PX, at.top - GAP_PX - height);
  const isRtl = document.dir === "rtl";
  const start = isRtl ? innerWidth - at.right : at.left;
  const x = Math.max(EDGE_PX, Math.min(start, innerWidth - width - EDGE_PX));
  popover.style.setProperty("--popover-x", `${x}px`);
  popover.style.setProperty("--popover-y", `${y}px`);
}

/** Place each popover that is opened by a button with `popovertarget`. */
export function placeAllPopovers() {
  for (const button of document.querySelectorAll("[popovertarget]")) {
    const popover = document.getElementById(button.getAttribute("popovertarget") ?? "");
    popover?.addEventListener("toggle", (event) => {
      if (/** @type {ToggleEvent} */ (event).newState === "open") placePopover(popover, button);
    });
  }
}
