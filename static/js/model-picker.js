// @ts-check
/**
 * <model-picker>: the current model at the top of the chat, and the way to the list of all (model-list.js),
 * which is loaded as somebody reaches for it.
 * Events, of the list: "choose" name of a model, "beside" name: answers too from now on, or no more,
 * "pin" name, "load" name: try again, "assistant" id.
 */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { placePopover } from "./popover.js";

/**
 * @typedef {object} Shown
 * @property {any[]} models states of docs/socket.md
 * @property {string} chosen name
 * @property {{id: string, name: string} | null} assistant of the shown chat
 * @property {string[]} beside names of those that answer beside it
 * @property {string[]} pinned names
 * @property {import("./chat-setup.js").Assistant[]} assistants to start chats with
 */

export class ModelPicker extends HTMLElement {
  /** @type {HTMLElement} */
  menu = find(this, "[popover]");
  /** @type {HTMLButtonElement} */
  button = find(this, ".picker");
  /** @type {import("./chat-setup.js").Assistant[]} to start chats with */
  assistants = [];
  /** @type {Omit<Shown, "assistants">} */
  #shown = { models: [], chosen: "", assistant: null, beside: [], pinned: [] };
  /** @type {import("./model-list.js").ModelList | null} */
  #list = null;

  connectedCallback() {
    for (const sign of ["pointerenter", "focus"]) this.button.addEventListener(sign, () => this.#load().catch(() => {}));
    this.menu.addEventListener("toggle", (event) => {
      if (/** @type {ToggleEvent} */ (event).newState === "open") this.#opened();
    });
  }

  /** @param {Omit<Shown, "assistants">} shown */
  show(shown) {
    this.#shown = shown;
    const { models, chosen, assistant, beside } = shown;
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
    this.#render();
  }

  toggle() {
    this.button.click();
  }

  async #load() {
    const { ModelList } = await import("./model-list.js");
    if (this.#list) return;
    this.#list = new ModelList(this.menu, (name, detail) => this.dispatchEvent(new CustomEvent(name, { detail })));
    this.#render();
  }

  async #opened() {
    try {
      await this.#load();
    } catch {
      setText(this.menu, gettext("The server cannot be reached."));
    }
    placePopover(this.menu, this.button); // it is as high now as it will be
    this.#list?.begin();
  }

  #render() {
    this.#list?.show({ ...this.#shown, assistants: this.assistants });
  }
}

customElements.define("model-picker", ModelPicker);
