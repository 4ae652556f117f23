// @ts-check
/**
 * How a chat is set up: the assistant that a new one starts with, and the dialog for its system
 * prompt and for what is shown of it once it is long. A chat that has not begun keeps both here until
 * its first message takes them along.
 */

import { element, find, setText } from "./dom.js";
import { Emitter } from "./emitter.js";
import { gettext } from "./i18n.js";

/**
 * @typedef {{id: string, name: string, description: string, model: string, system_prompt: string,
 *   starters: string[], history_strategy: string | null,
 *   collections: import("./sources.js").Named[]}} Assistant
 * @typedef {{assistant?: string, system_prompt?: string}} NewChat fields of message.send
 */

/** Emits "changed" when the next prompt will be another one. */
export class ChatSetup extends Emitter {
  /** @type {Assistant | null} */
  #assistant = null;
  #systemPrompt = "";
  /** @type {{id: string} | null} */
  #conversation = null;
  #version = 0;

  /**
   * @param {import("./api.js").Api} api
   * @param {HTMLDialogElement} dialog
   * @param {(words: string) => void} say
   */
  constructor(api, dialog, say) {
    super();
    this.api = api;
    this.dialog = dialog;
    this.say = say;
    this.prompt = /** @type {HTMLTextAreaElement} */ (find(dialog, "textarea"));
    this.strategy = /** @type {HTMLSelectElement} */ (find(dialog, "select"));
    find(dialog, "form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      const isSaved = /** @type {HTMLButtonElement | null} */ (event.submitter)?.value === "yes";
      if (!isSaved) return;
      event.preventDefault();
      this.#save();
    });
  }

  /** The one of the chat that begins next. */
  get assistant() {
    return this.#assistant;
  }

  set assistant(assistant) {
    this.#assistant = assistant;
    this.emit("changed");
  }

  /** What the first message of a new chat takes along. @returns {NewChat} */
  get fieldsOfNew() {
    return {
      ...(this.assistant && { assistant: this.assistant.id }),
      ...(this.#systemPrompt && { system_prompt: this.#systemPrompt }),
    };
  }

  /** Another chat is shown: what was prepared for a new one is over. */
  forget() {
    this.#assistant = null;
    this.#systemPrompt = "";
  }

  /** @param {{id: string} | null} conversation null: the chat that begins next */
  async open(conversation) {
    this.#conversation = conversation;
    let setup;
    try {
      setup = conversation ? await this.api.setup(conversation.id) : null;
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
      return;
    }
    this.#version = setup?.version ?? 0;
    this.prompt.value = setup?.system_prompt ?? (this.#systemPrompt || this.assistant?.system_prompt || "");
    this.strategy.value = setup?.history_strategy ?? "window";
    find(this.dialog, "[data-only-existing]").hidden = !conversation;
    this.#showInstructions(setup?.instructions ?? "");
    this.#problem("");
    this.dialog.showModal();
  }

  /** @param {string} instructions */
  #showInstructions(instructions) {
    const root = find(this.dialog, "[data-instructions]");
    root.hidden = !instructions;
    setText(find(root, "blockquote"), instructions);
  }

  async #save() {
    const system_prompt = this.prompt.value.trim();
    if (!this.#conversation) {
      this.#systemPrompt = system_prompt;
      this.dialog.close();
      this.emit("changed");
      return;
    }
    const changes = { system_prompt, history_strategy: this.strategy.value, version: this.#version };
    try {
      await this.api.changeSetup(this.#conversation.id, changes);
    } catch (error) {
      this.#problem(/** @type {Error} */ (error).message);
      return; // what was typed stays
    }
    this.dialog.close();
    this.emit("changed");
    this.say(gettext("Saved. It counts from the next answer on."));
  }

  /** @param {string} words */
  #problem(words) {
    const root = find(this.dialog, "[data-problem]");
    root.hidden = !words;
    setText(root, words);
  }
}

/**
 * The empty chat of an assistant, or the usual one: what the built-in model is asked for is what little it can.
 * @param {HTMLElement} page
 */
export function welcomeOf(page) {
  const greeting = find(page, "#greeting");
  const about = find(page, "[data-about-model]");
  const list = find(page, ".starters__list");
  const usual = { greeting: greeting.textContent, starters: /** @type {HTMLElement[]} */ ([...list.children]) };
  /**
   * @param {Assistant | null} assistant
   * @param {{name: string, description: string} | null} model
   */
  return (assistant, model) => {
    const starters = usual.starters.filter(({ dataset }) => "demo" in dataset === (model?.name === list.dataset.demoOf));
    for (const item of starters) item.hidden = false;
    setText(greeting, assistant?.name ?? usual.greeting);
    setText(about, assistant?.description || (assistant ? "" : (model?.description ?? "")));
    list.replaceChildren(...(assistant ? assistant.starters.map(starter) : starters));
  };
}

/** @param {string} text */
function starter(text) {
  const attributes = { type: "button", class: "starter", "data-starter": text, dir: "auto" };
  return element("li", {}, [element("button", attributes, [text])]);
}
