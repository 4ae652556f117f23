// @ts-check
/**
 * Writing another text in the place of a message. Ctrl or ⌘ with Enter saves, Escape leaves it.
 * What was written is given to whoever asks for it.
 */

import { element } from "./dom.js";
import { gettext } from "./i18n.js";

/**
 * @typedef {object} Editing
 * @property {HTMLElement} root the message
 * @property {string} text
 * @property {string} [typed] what was written before, and could not be saved
 * @property {string} label
 * @property {string} save words on the button
 * @property {string} about what saving does
 */

/**
 * @param {Editing} editing
 * @returns {Promise<string | null>} the new text, null if it stays as it is
 */
export function edited({ root, text, typed = text, label, save, about }) {
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
  input.focus();
  input.setSelectionRange(typed.length, typed.length);
  return new Promise((resolve) => {
    const end = (/** @type {string | null} */ value) => {
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
      if (event.isComposing) return;
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
