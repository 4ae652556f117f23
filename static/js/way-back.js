// @ts-check
/** Back to the form that was sent, in which the browser keeps what was written. */

const button = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-way-back]"));
if (button && history.length > 1) {
  button.hidden = false;
  button.addEventListener("click", () => history.back());
}
