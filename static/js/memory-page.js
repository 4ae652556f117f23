// @ts-check
/** The settings page of what is remembered: its forms without reloads, and what is deleted can be taken back. */

import { Api } from "./api.js";
import { find, isComposing, setText } from "./dom.js";
import { gettext, LOCALE, ngettext } from "./i18n.js";
import { ToastRegion } from "./toast.js";
import { thousands } from "./words.js";

/** @typedef {{id: string, text: string, conversation: string | null, created_at: string, is_new?: boolean}} Memory */

const UNDO_MS = 10_000;
const SHORT = 60;

/** @param {ParentNode} root that has the page, and a place for toasts */
export function showMemories(root) {
  new MemoryPage(find(root, "[data-memories]"), /** @type {ToastRegion} */ (root.querySelector("toast-region")));
}

class MemoryPage {
  /** @param {HTMLElement} root @param {ToastRegion} toasts */
  constructor(root, toasts) {
    this.root = root;
    this.toasts = toasts;
    this.api = new Api(root.dataset.csrf ?? "");
    this.list = find(root, "[data-list]");
    root.toggleAttribute("data-live", true);
    this.#showSwitch();
    for (const row of root.querySelectorAll(".memory")) live(/** @type {HTMLElement} */ (row));
    root.addEventListener("submit", (event) => this.#submitted(/** @type {SubmitEvent} */ (event)));
    root.addEventListener("click", ({ target }) => {
      const button = /** @type {HTMLElement} */ (target).closest("[data-cancel]");
      if (button) close(rowOf(button));
    });
    root.addEventListener("keydown", (event) => this.#key(event));
    this.#showCost();
  }

  #showSwitch() {
    const form = find(this.root, "[data-switch]");
    find(form, "button").hidden = true;
    const box = /** @type {HTMLInputElement} */ (find(form, "input[type=checkbox]"));
    box.addEventListener("change", async () => {
      const isOn = box.checked;
      const isDone = await this.#attempt(() => this.api.personalise({ uses_memories: isOn }));
      if (isDone) box.defaultChecked = isOn;
      else box.checked = box.defaultChecked;
      this.#showCost();
    });
  }

  /** @param {SubmitEvent} event */
  #submitted(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (form.matches("[data-new]")) return this.#add(form);
    if (form.matches("[data-change]")) return this.#save(form);
    if (form.matches("[data-forget-all]")) return this.#forgetAll();
    return this.#forget(rowOf(form));
  }

  /** Enter saves, as in one line; Escape leaves a row as it was. @param {KeyboardEvent} event */
  #key(event) {
    const area = /** @type {HTMLElement} */ (event.target);
    if (!area.matches("textarea") || isComposing(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      area.closest("form")?.requestSubmit();
    } else if (event.key === "Escape" && area.closest(".memory")) {
      event.preventDefault();
      event.stopPropagation();
      close(rowOf(area));
    }
  }

  // --- changes -----------------------------------------------------------------------------

  /** @param {HTMLFormElement} form */
  async #add(form) {
    const area = find(form, "textarea");
    const problem = find(form, "[data-problem]");
    try {
      const memory = /** @type {Memory} */ (await this.api.memory("POST", "", { text: area.value }));
      setText(problem, "");
      area.removeAttribute("aria-invalid");
      area.value = area.defaultValue = "";
      area.focus();
      if (!memory.is_new) return this.toasts.show(gettext("This is remembered already."));
      this.list.prepend(this.#row(memory));
      this.#changed();
    } catch (error) {
      setText(problem, /** @type {Error} */ (error).message);
      area.setAttribute("aria-invalid", "true");
      area.setAttribute("aria-describedby", problem.id);
    }
  }

  /** @param {HTMLFormElement} form */
  #save(form) {
    const row = rowOf(form);
    return this.#attempt(async () => {
      fill(row, await this.api.memory("PUT", row.dataset.memory, { text: find(form, "textarea").value }));
      close(row);
      this.#changed();
    });
  }

  /** @param {HTMLElement} row */
  #forget(row) {
    return this.#attempt(async () => {
      const { memory: id, chat } = row.dataset;
      const text = find(row, ".memory__text").textContent ?? "";
      await this.api.memory("DELETE", id);
      const next = /** @type {HTMLElement | null} */ (row.nextElementSibling ?? row.previousElementSibling);
      const place = row.nextElementSibling;
      row.remove();
      this.#changed();
      (next?.querySelector("summary") ?? find(this.root, "#new-memory")).focus();
      const back = async () => {
        await this.api.memory("PUT", id, { text, conversation: chat || null });
        this.list.insertBefore(row, place?.parentNode === this.list ? place : null);
        this.#changed();
        find(row, "summary").focus();
      };
      this.toasts.show(gettext("It is forgotten."), { action: gettext("Undo"), run: back, shownMs: UNDO_MS });
    });
  }

  #forgetAll() {
    return this.#attempt(async () => {
      await this.api.memory("DELETE", "");
      this.list.replaceChildren();
      find(this.root, ".memories__all").removeAttribute("open");
      this.#changed();
      find(this.root, "#new-memory").focus();
      this.toasts.show(gettext("All is forgotten."));
    });
  }

  // --- what is shown -----------------------------------------------------------------------

  /** @param {Memory} memory */
  #row(memory) {
    const template = /** @type {HTMLTemplateElement} */ (find(this.root, "template"));
    const row = /** @type {HTMLElement} */ (find(template.content, ".memory").cloneNode(true));
    fill(row, memory);
    live(row);
    return row;
  }

  #changed() {
    const number = this.list.children.length;
    setText(find(this.root, "[data-count]"), thousands(number));
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("[data-some]"))) part.hidden = !number;
    find(this.root, "[data-none]").hidden = number > 0;
    this.#showCost();
  }

  /** What it takes of each new chat, where the engine counts the tokens of the usual model. */
  async #showCost() {
    const meter = await this.api.meter(/** @type {any} */ ({ text: "", model: null })).catch(() => null);
    const tokens = meter?.segments?.find((/** @type {{name: string}} */ { name }) => name === "memory")?.tokens ?? 0;
    const words = ngettext("%(n)s token of each new chat", "%(n)s tokens of each new chat", tokens);
    setText(find(this.root, "[data-cost]"), tokens ? words : "");
  }

  /** @param {() => Promise<unknown>} work @returns {Promise<boolean>} whether it is done */
  async #attempt(work) {
    try {
      await work();
      return true;
    } catch (error) {
      this.toasts.show(/** @type {Error} */ (error).message);
      return false;
    }
  }
}

/** @param {Element} part */
function rowOf(part) {
  return /** @type {HTMLElement} */ (part.closest(".memory"));
}

/** A row that is opened is written in. @param {HTMLElement} row */
function live(row) {
  find(row, "[data-cancel]").hidden = false;
  const details = find(row, "details");
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    const area = find(row, "textarea");
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  });
}

/** @param {HTMLElement} row */
function close(row) {
  const area = find(row, "textarea");
  area.value = area.defaultValue;
  find(row, "details").open = false;
  find(row, "summary").focus();
}

/** @param {HTMLElement} row @param {Memory} memory */
function fill(row, { id, text, conversation, created_at }) {
  row.dataset.memory = id;
  row.dataset.chat = conversation ?? "";
  for (const field of row.querySelectorAll("input[name=memory]")) /** @type {HTMLInputElement} */ (field).value = id;
  setText(find(row, ".memory__text"), text);
  find(row, "textarea").defaultValue = text;
  const name = text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text;
  find(row, "summary").setAttribute("aria-label", gettext("Edit %(name)s", { name }));
  find(row, "[data-forget] button").setAttribute("aria-label", gettext("Delete %(name)s", { name }));
  const when = find(row, "[data-when]");
  if (!when.textContent) setText(when, new Date(created_at).toLocaleDateString(LOCALE, { dateStyle: "long" }));
  find(row, "[data-from]").hidden = !conversation;
  find(row, "[data-from] a").setAttribute("href", `/c/${conversation ?? ""}`);
}
