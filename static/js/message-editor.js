// @ts-check
/**
 * Writing another text in the place of a message. Ctrl or ⌘ with Enter saves, Escape leaves it.
 * What was written is given to whoever asks for it, and before that to whoever keeps it.
 */

import { element, isComposing } from "./dom.js";
import { gettext } from "./i18n.js";

const KEEP_AFTER_MS = 300;

/**
 * @typedef {object} Editing
 * @property {HTMLElement} root the message
 * @property {string} text
 * @property {string} [typed] what was written before, and is not saved
 * @property {(typed: string) => void} keep in case that the page goes before it is saved
 * @property {boolean} [isQuiet] the focus stays where it is
 * @property {string} label
 * @property {string} save words on the button
 * @property {string} about what saving does
 */

/**
 * @param {Editing} editing
 * @returns {Promise<string | null>} the new text, null if it stays as it is
 */
export function edited({ root, text, typed = text, keep, isQuiet = false, label, save, about }) {
  const input = /** @type {HTMLTextAreaElement} */ (
    element("textarea", { class: "editor__input", rows: "1", dir: "auto", "aria-label": label })
  );
  input.value = typed;
  const cancel = element("button", { type: "button", class: "button" }, [gettext("Cancel")]);
  const submit = element("button", { class: "button button--primary" }, [save]);
  const row = [element("span", { class: "editor__about" }, [about]), cancel, submit];
  const form = /** @type {HTMLFormElement} */ (
    element("form", { class: "editor" }, [input, element("div", { class: "editor__row" }, row)])
  );
  root.querySelector(".editor")?.remove();
  root.setAttribute("data-editing", "");
  root.querySelector(".message__parts")?.after(form);
  input.setSelectionRange(typed.length, typed.length);
  if (!isQuiet) input.focus();
  const stopKeeping = keepTyped(input, keep);
  return new Promise((resolve) => {
    const end = (/** @type {string | null} */ value) => {
      stopKeeping();
      root.removeAttribute("data-editing");
      form.remove();
      resolve(value);
    };
    cancel.addEventListener("click", () => end(null));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const value = input.value.trim();
      if (value) end(value === text.trim() ? null : value);
    });
    input.addEventListener("keydown", (event) => {
      event.stopPropagation(); // Escape leaves the editor, it does not stop an answer
      if (isComposing(event)) return;
      if (event.key === "Escape") {
        event.preventDefault();
        end(null);
      }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
  });
}

/**
 * Another chat may be shown, or another page, before anything is decided here.
 * @param {HTMLTextAreaElement} input
 * @param {(typed: string) => void} keep
 * @returns {() => void} to stop
 */
function keepTyped(input, keep) {
  const over = new AbortController();
  let timer = 0;
  const keepNow = () => {
    clearTimeout(timer);
    if (!over.signal.aborted) keep(input.value);
    if (!input.isConnected) over.abort(); // the same message may have another editor by now
  };
  const keepSoon = () => {
    clearTimeout(timer);
    timer = window.setTimeout(keepNow, KEEP_AFTER_MS);
  };
  input.addEventListener("input", keepSoon);
  input.addEventListener("blur", keepNow);
  addEventListener("pagehide", () => (input.isConnected ? keepNow() : over.abort()), { signal: over.signal });
  return () => {
    clearTimeout(timer);
    over.abort();
  };
}
