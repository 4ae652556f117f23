// @ts-check
/**
 * <model-picker>: the current model at the top of the chat and the list to choose from, and which
 * others answer beside it.
 * Events: "choose" name of a model, "beside" name: answers too from now on, or no more, "assistant" id.
 */

import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { percent } from "./words.js";

/** @type {Record<string, string>} */
const STATE_WORDS = {
  ready: gettext("Ready"),
  cold: gettext("Loads when used"),
  asleep: gettext("Asleep, wakes when used"),
  failed: gettext("Failed"),
};

export class ModelPicker extends HTMLElement {
  /** @type {HTMLElement} */
  menu = find(this, "[popover]");
  /** @type {HTMLButtonElement} */
  button = find(this, ".picker");

  /** @type {any[]} */
  #models = [];
  #chosen = "";
  /** @type {import("./chat-setup.js").Assistant[]} to start chats with */
  assistants = [];
  /** @type {{id: string, name: string} | null} */
  #assistant = null;
  /** @type {string[]} */
  #beside = [];

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
   * @param {{id: string, name: string} | null} [assistant] of the shown chat
   * @param {string[]} [beside] names of those that answer beside it
   */
  show(models, chosen, assistant = null, beside = []) {
    this.#models = models;
    this.#chosen = chosen;
    this.#assistant = assistant;
    this.#beside = beside;
    const titleOf = (/** @type {string} */ name) => models.find((model) => model.name === name)?.title;
    const title = titleOf(chosen) ?? gettext("No model");
    setText(find(this, ".picker__title"), assistant ? `${assistant.name} · ${title}` : title);
    const others = find(this, ".picker__beside");
    others.hidden = !beside.length;
    setText(others, `+ ${beside.length}`);
    const all = [title, ...beside.map(titleOf)].join(", ");
    const words = beside.length ? gettext("Models: %(models)s", { models: all }) : gettext("Model: %(model)s", { model: all });
    const label = assistant ? `${gettext("Assistant: %(name)s", { name: assistant.name })}. ${words}` : words;
    this.button.setAttribute("aria-label", label);
    this.#renderMenu();
  }

  toggle() {
    this.button.click();
  }

  #renderMenu() {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.row;
    const models = this.#models.map((model) => this.#renderRow(model));
    const assistants = this.assistants.map((assistant) => this.#renderAssistant(assistant));
    const groups = assistants.length ? [group(gettext("Assistants"), assistants), group(gettext("Models"), models)] : models;
    this.menu.replaceChildren(...groups);
    const row = focused && this.menu.querySelector(`[data-row="${CSS.escape(focused)}"]`);
    if (row) /** @type {HTMLElement} */ (row).focus();
  }

  /** @param {any} model */
  #renderRow(model) {
    const isAlone = this.#models.length < 2;
    const parts = [this.#renderModel(model), ...(isAlone ? [] : [this.#renderBeside(model)])];
    return element("div", { class: "model-row", role: "none" }, parts);
  }

  /** @param {any} model */
  #renderBeside({ name, title, state }) {
    const isOn = this.#beside.includes(name);
    const words = isOn ? gettext("%(model)s answers too: leave it out", { model: title }) : gettext("Have %(model)s answer too, side by side", { model: title });
    const button = element("button", {
      type: "button", class: "small-button model-row__beside", role: "menuitemcheckbox",
      "aria-checked": String(isOn), "aria-label": words, title: words,
      "data-row": `beside ${name}`, "data-beside": name,
    }, [icon("columns-2")]);
    button.hidden = name === this.#chosen || (state === "failed" && !isOn);
    return button;
  }

  /** @param {any} model */
  #renderModel(model) {
    const isChosen = model.name === this.#chosen;
    const role = { role: "menuitemradio", "aria-checked": String(isChosen) };
    const about = model.state === "failed" ? model.detail || model.description : model.description;
    const attributes = { type: "button", class: "model", "data-row": `model ${model.name}`, "data-model": model.name, ...role };
    return element("button", attributes, [
      element("span", { class: "model__title" }, [model.title]),
      modelBadge(model),
      element("span", { class: "model__about", dir: "auto" }, [about]),
    ]);
  }

  /** @param {import("./chat-setup.js").Assistant} assistant */
  #renderAssistant({ id, name, description }) {
    const isChosen = id === this.#assistant?.id;
    const role = { role: "menuitemradio", "aria-checked": String(isChosen) };
    const row = { type: "button", class: "model", "data-row": id, "data-assistant": id, ...role };
    const title = element("span", { class: "model__title", dir: "auto" }, [name]);
    return element("button", row, [title, element("span", { class: "model__about", dir: "auto" }, [description])]);
  }

  /** @param {Event} event */
  #clicked(event) {
    const assistant = /** @type {HTMLElement | null} */ (
      /** @type {Element} */ (event.target).closest("[data-assistant]")
    );
    if (assistant) {
      this.menu.hidePopover();
      this.dispatchEvent(new CustomEvent("assistant", { detail: assistant.dataset.assistant }));
      return;
    }
    const row = /** @type {HTMLElement | null} */ (
      /** @type {Element} */ (event.target).closest("[data-model], [data-beside]")
    );
    if (!row) return;
    const { model, beside } = row.dataset;
    if (model) this.menu.hidePopover();
    this.dispatchEvent(new CustomEvent(model ? "choose" : "beside", { detail: model ?? beside }));
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    const row = focused.closest(".model-row");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const isAcross = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (!step && !isAcross) return;
    event.preventDefault();
    if (step) {
      const rows = /** @type {HTMLElement[]} */ ([...this.menu.querySelectorAll(".model")]);
      const at = rows.findIndex((each) => each === focused || row?.contains(each));
      rows.at((at + step) % rows.length)?.focus();
    } else {
      const both = /** @type {HTMLElement[]} */ ([...(row?.querySelectorAll("button:not([hidden])") ?? [])]);
      both.find((button) => button !== focused)?.focus();
    }
  }
}

/**
 * @param {string} title
 * @param {HTMLElement[]} rows
 */
function group(title, rows) {
  const head = element("div", { class: "models__head", "aria-hidden": "true" }, [title]);
  return element("div", { role: "group", "aria-label": title }, [head, ...rows]);
}

/** @param {{state: string, progress: number}} model */
function modelBadge({ state, progress }) {
  const words = state === "loading" ? `${gettext("Loading")} ${percent(progress)}` : STATE_WORDS[state];
  return element("span", { class: "badge", "data-state": state }, [words]);
}

customElements.define("model-picker", ModelPicker);
