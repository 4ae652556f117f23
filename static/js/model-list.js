// @ts-check
/**
 * The list of models and assistants behind <model-picker>: pinned ones first, what is known of each, and
 * why one cannot be chosen. Arrows, Home, End and first letters walk it; a long one can be filtered.
 */

import { element, icon, isComposing, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { groupsOf, stepFrom, stepTyped } from "./model-groups.js";
import { percent, thousands } from "./words.js";

/** From here on names are typed rather than looked for. */
const MANY = 8;

/** @type {Record<string, string>} */
const STATE_WORDS = {
  ready: gettext("Ready"),
  cold: gettext("Loads when used"),
  asleep: gettext("Asleep, wakes when used"),
  failed: gettext("Failed"),
};

/** @typedef {import("./model-picker.js").Shown} Shown */

export class ModelList {
  /** @type {Shown} */
  #shown = { models: [], chosen: "", assistant: null, beside: [], pinned: [], assistants: [] };
  #filter = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", class: "models__filter", placeholder: gettext("Filter"), "aria-label": gettext("Filter the models"),
    autocomplete: "off", spellcheck: "false", dir: "auto", "aria-controls": "models-list",
  }));
  #none = element("p", { class: "models__none", role: "status" });
  #list = element("div", { id: "models-list", role: "menu", "aria-label": gettext("Models") });

  /**
   * @param {HTMLElement} menu a popover
   * @param {(name: "choose" | "beside" | "pin" | "load" | "assistant", detail: string) => void} tell
   */
  constructor(menu, tell) {
    this.menu = menu;
    this.tell = tell;
    menu.replaceChildren(this.#filter, this.#none, this.#list);
    this.#filter.addEventListener("input", () => this.#render());
    this.#list.addEventListener("click", (event) => this.#clicked(event));
    menu.addEventListener("keydown", (event) => this.#keyPressed(event));
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#shown = shown;
    this.#filter.hidden = shown.models.length + shown.assistants.length <= MANY;
    this.#render();
  }

  /** It was opened. */
  begin() {
    this.#filter.value = "";
    this.#render();
    const chosen = this.#list.querySelector("[aria-checked=true]");
    const isTyped = !this.#filter.hidden && matchMedia("(hover: hover)").matches; // no keyboard leaps up for a finger
    /** @type {HTMLElement | null} */ (isTyped ? this.#filter : chosen ?? this.#list.querySelector(".model"))?.focus();
    chosen?.scrollIntoView({ block: "nearest" });
  }

  // --- drawing -----------------------------------------------------------------------------

  #render() {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.row;
    const groups = groupsOf(this.#shown, this.#filter.hidden ? "" : this.#filter.value);
    this.#list.replaceChildren(...groups.map(({ title, assistants, models }) => {
      const rows = [...assistants.map((one) => this.#renderAssistant(one)), ...models.map((one) => this.#renderRow(one))];
      return groups.length > 1 || title ? group(title || gettext("Models"), rows) : element("div", { role: "none" }, rows);
    }));
    setText(this.#none, groups.length ? "" : gettext("No model is called that."));
    const row = focused && this.#list.querySelector(`[data-row="${CSS.escape(focused)}"]`);
    if (row) /** @type {HTMLElement} */ (row).focus();
  }

  /** @param {any} model */
  #renderRow(model) {
    const isAlone = this.#shown.models.length < 2;
    const parts = [this.#renderModel(model), ...(isAlone ? [] : [model.state === "failed" ? retry(model) : this.#renderBeside(model), this.#renderPin(model)])];
    return element("div", { class: "model-row", role: "none" }, parts);
  }

  /** @param {any} model */
  #renderBeside({ name, title }) {
    const isOn = this.#shown.beside.includes(name);
    const words = isOn ? gettext("%(model)s answers too: leave it out", { model: title }) : gettext("Have %(model)s answer too, side by side", { model: title });
    const button = smallButton("columns-2", words, "beside", name, { role: "menuitemcheckbox", "aria-checked": String(isOn) });
    button.toggleAttribute("data-absent", name === this.#shown.chosen);
    return button;
  }

  /** @param {any} model */
  #renderPin({ name, title }) {
    const isOn = this.#shown.pinned.includes(name);
    const words = isOn ? gettext("%(model)s stands first: let it go", { model: title }) : gettext("Have %(model)s stand first", { model: title });
    return smallButton("pin", words, "pin", name, { role: "menuitemcheckbox", "aria-checked": String(isOn) });
  }

  /** One that has failed says why in the place of what it is, and cannot be chosen. @param {any} model */
  #renderModel(model) {
    const isChosen = model.name === this.#shown.chosen;
    const isFailed = model.state === "failed";
    const role = { role: "menuitemradio", "aria-checked": String(isChosen), ...(isFailed ? { "aria-disabled": "true" } : {}) };
    const about = isFailed ? model.detail || model.description : model.description;
    const attributes = { type: "button", class: "model", "data-row": `model ${model.name}`, "data-model": model.name, ...role };
    const facts = factsOf(model);
    return element("button", attributes, [
      element("span", { class: "model__title" }, [model.title]),
      modelBadge(model),
      element("span", { class: "model__about", dir: "auto" }, [about]),
      ...(facts ? [element("span", { class: "model__facts numbers" }, [facts])] : []),
    ]);
  }

  /** @param {import("./chat-setup.js").Assistant} assistant */
  #renderAssistant({ id, name, description }) {
    const isChosen = id === this.#shown.assistant?.id;
    const role = { role: "menuitemradio", "aria-checked": String(isChosen) };
    const row = { type: "button", class: "model", "data-row": id, "data-assistant": id, ...role };
    const title = element("span", { class: "model__title", dir: "auto" }, [name]);
    return element("button", row, [title, element("span", { class: "model__about", dir: "auto" }, [description])]);
  }

  // --- choosing ----------------------------------------------------------------------------

  /** @param {Event} event */
  #clicked(event) {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (!button || button.ariaDisabled === "true") return;
    const { assistant, model, act = "", name = "" } = button.dataset;
    if (assistant || model) this.menu.hidePopover();
    if (assistant) this.tell("assistant", assistant);
    else if (model) this.tell("choose", model);
    else this.tell(/** @type {"beside" | "pin" | "load"} */ (act), name);
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    const isInFilter = focused === this.#filter;
    const rows = /** @type {HTMLElement[]} */ ([...this.#list.querySelectorAll(".model")]);
    const at = rows.findIndex((row) => row === focused || row.closest(".model-row")?.contains(focused));
    if (isInFilter && event.key === "Enter") rows.find((row) => row.ariaDisabled !== "true")?.click();
    else if (isInFilter && ["Home", "End", "ArrowLeft", "ArrowRight"].includes(event.key)) return;
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.#across(focused, event.key === "ArrowRight");
    else {
      const to = stepFrom(event.key, at, rows.length) ?? (isInFilter ? null : this.#typed(event.key, at, rows));
      if (to === null) return;
      rows[to]?.focus();
    }
    event.preventDefault();
  }

  /**
   * A letter goes to the next row that begins with it, or into the filter.
   * @param {string} key
   * @param {number} at
   * @param {HTMLElement[]} rows
   */
  #typed(key, at, rows) {
    if (!/^[\p{L}\p{N}]$/u.test(key)) return null;
    if (this.#filter.hidden) return stepTyped(key, at, rows.map((row) => row.textContent ?? ""));
    this.#filter.focus(); // the key goes there, too
    return null;
  }

  /**
   * Between the buttons of a row.
   * @param {HTMLElement} focused
   * @param {boolean} isRight
   */
  #across(focused, isRight) {
    const all = /** @type {HTMLElement[]} */ ([...(focused.closest(".model-row")?.querySelectorAll("button:not([data-absent])") ?? [])]);
    const step = isRight === (document.dir !== "rtl") ? 1 : -1;
    all[all.indexOf(focused) + step]?.focus();
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

/** @param {any} model that has failed */
function retry({ name, title }) {
  return smallButton("rotate-cw", gettext("Try to load %(model)s again", { model: title }), "load", name, { role: "menuitem" });
}

/**
 * @param {string} sign its icon
 * @param {string} words
 * @param {"beside" | "pin" | "load"} act
 * @param {string} name of the model
 * @param {Record<string, string>} more
 */
function smallButton(sign, words, act, name, more) {
  const about = { "aria-label": words, title: words, "data-row": `${act} ${name}`, "data-act": act, "data-name": name, [`data-${act}`]: name };
  return element("button", { type: "button", class: "small-button model-row__more", ...about, ...more }, [icon(sign)]);
}

/** @param {{context_tokens: number | null, tools: boolean | null, images: boolean}} model */
function factsOf({ context_tokens: context, tools, images }) {
  const words = [context && gettext("%(n)s tokens of context", { n: thousands(context) }), tools && gettext("Tools"), images && gettext("Sees pictures")];
  return words.filter(Boolean).join(" · ");
}

/** @param {{state: string, progress: number, straggling: boolean}} model */
function modelBadge({ state, progress, straggling }) {
  const known = state === "ready" && straggling ? gettext("Slower than usual") : STATE_WORDS[state];
  const words = state === "loading" ? `${gettext("Loading")} ${percent(progress)}` : known;
  return element("span", { class: "badge", "data-state": state, ...(straggling ? { "data-slow": "" } : {}) }, [words]);
}
