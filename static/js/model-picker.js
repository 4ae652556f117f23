// @ts-check
/**
 * <model-picker>: the current model at the top of the chat and the list to choose from.
 * Event: "choose" name.
 */

import { element, find, setText } from "./dom.js";
import { percent } from "./words.js";

/** @type {Record<string, string>} */
const STATE_WORDS = {
  ready: "Ready",
  cold: "Loads when used",
  asleep: "Asleep, wakes when used",
  failed: "Failed",
};

export class ModelPicker extends HTMLElement {
  /** @type {HTMLElement} */
  menu = find(this, "[popover]");
  /** @type {HTMLButtonElement} */
  button = find(this, ".picker");

  /** @type {any[]} */
  #models = [];
  #chosen = "";

  connectedCallback() {
    this.menu.addEventListener("click", (event) => this.#clicked(event));
    this.menu.addEventListener("keydown", (event) => this.#keyPressed(event));
    this.menu.addEventListener("toggle", (event) => {
      if (/** @type {ToggleEvent} */ (event).newState !== "open") return;
      const chosen = this.menu.querySelector("[aria-checked=true]");
      /** @type {HTMLElement | null} */ (chosen)?.focus();
    });
  }

  /**
   * @param {any[]} models
   * @param {string} chosen name
   */
  show(models, chosen) {
    this.#models = models;
    this.#chosen = chosen;
    const title = models.find((model) => model.name === chosen)?.title ?? "No model";
    setText(find(this, ".picker__title"), title);
    this.button.setAttribute("aria-label", `Model: ${title}`);
    this.#renderMenu();
  }

  toggle() {
    this.button.click();
  }

  #renderMenu() {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.model;
    this.menu.replaceChildren(...this.#models.map((model) => this.#renderModel(model)));
    const row = focused && this.menu.querySelector(`[data-model="${CSS.escape(focused)}"]`);
    if (row) /** @type {HTMLElement} */ (row).focus();
  }

  /** @param {any} model */
  #renderModel(model) {
    const isChosen = model.name === this.#chosen;
    const role = { role: "menuitemradio", "aria-checked": String(isChosen) };
    const about = model.state === "failed" ? model.detail || model.description : model.description;
    const attributes = { type: "button", class: "model", "data-model": model.name, ...role };
    return element("button", attributes, [
      element("span", { class: "model__title" }, [model.title]),
      modelBadge(model),
      element("span", { class: "model__about" }, [about]),
    ]);
  }

  /** @param {Event} event */
  #clicked(event) {
    const row = /** @type {HTMLElement | null} */ (
      /** @type {Element} */ (event.target).closest("[data-model]")
    );
    if (!row) return;
    this.menu.hidePopover();
    this.dispatchEvent(new CustomEvent("choose", { detail: row.dataset.model }));
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const rows = /** @type {HTMLElement[]} */ ([...this.menu.children]);
    const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    rows.at((at + step) % rows.length)?.focus();
  }
}

/** @param {{state: string, progress: number}} model */
function modelBadge({ state, progress }) {
  const words = state === "loading" ? `Loading ${percent(progress)}` : STATE_WORDS[state];
  return element("span", { class: "badge", "data-state": state }, [words]);
}

customElements.define("model-picker", ModelPicker);
