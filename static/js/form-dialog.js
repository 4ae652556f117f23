// @ts-check
/** Dialogs with a form: filled, shown, and closed when what they say was done. */

import { find, setText } from "./dom.js";

export class FormDialog {
  /** @type {(form: any) => unknown} */
  #work = () => null;

  /** @param {HTMLDialogElement} dialog with a form, a `[role=alert]` and a `[data-close]` */
  constructor(dialog) {
    this.dialog = dialog;
    this.form = find(dialog, "form");
    this.problem = find(dialog, "[role=alert]");
    find(dialog, "[data-close]").addEventListener("click", () => dialog.close());
    this.form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#send();
    });
  }

  /**
   * @param {Record<string, string>} values by field
   * @param {(form: any) => unknown} work with the form's elements; what it throws is shown
   * @param {string} [title]
   */
  open(values, work, title) {
    this.#work = work;
    this.say("");
    for (const [name, value] of Object.entries(values)) this.form.elements[name].value = value;
    if (title) setText(find(this.dialog, "h2"), title);
    this.dialog.showModal();
    this.form.querySelector("input, select")?.focus();
  }

  /** @param {string} words */
  say(words) {
    this.problem.hidden = !words;
    setText(this.problem, words);
  }

  async #send() {
    const button = find(this.form, "button:not([type])");
    if (button.disabled) return;
    button.disabled = true;
    this.say("");
    try {
      if ((await this.#work(this.form.elements)) !== false) this.dialog.close();
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    } finally {
      button.disabled = false;
    }
  }
}
