// @ts-check
/**
 * How a chat is set up: the assistant that a new one starts with, and what the dialog (chat-setup-dialog.js)
 * sets for it. A chat that has not begun keeps both here until its first message takes them along.
 */

import { element, find, setText } from "./dom.js";
import { Emitter } from "./emitter.js";
import { gettext } from "./i18n.js";

/**
 * @typedef {Record<string, number>} Parameters of chat.parameters
 * @typedef {{id: string, name: string, description: string, model: string, system_prompt: string,
 *   parameters: Parameters, starters: string[], history_strategy: string | null,
 *   tool_servers: string[], collections: import("./sources.js").Named[]}} Assistant
 * @typedef {{assistant?: string, system_prompt?: string, parameters?: Parameters,
 *   history_strategy?: string, tool_servers?: string[]}} NewChat fields of message.send
 */

/** Emits "changed" when the next prompt will be another one. */
export class ChatSetup extends Emitter {
  /** @type {Assistant | null} */
  #assistant = null;
  /** What the dialog has set for the chat that begins next. @type {NewChat} */
  #own = {};

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
    return { ...(this.assistant && { assistant: this.assistant.id }), ...this.#own };
  }

  /**
   * The tool servers that a chat uses.
   * @param {{tool_servers: string[]} | null} conversation null: the chat that begins next
   */
  toolServers(conversation) {
    return conversation?.tool_servers ?? this.#own.tool_servers ?? this.#assistant?.tool_servers ?? [];
  }

  /**
   * From the next answer on.
   * @param {{id: string, tool_servers: string[]} | null} conversation
   * @param {string[]} servers
   */
  async useTools(conversation, servers) {
    if (conversation) {
      await this.api.changeSetup(conversation.id, { tool_servers: servers });
      conversation.tool_servers = servers; // as the server will tell in a moment
    } else this.#own = { ...this.#own, tool_servers: servers };
    this.emit("changed");
  }

  /** Another chat is shown: what was prepared for a new one is over. */
  forget() {
    this.#assistant = null;
    this.#own = {};
  }

  /** @param {{id: string} | null} conversation null: the chat that begins next */
  async open(conversation) {
    try {
      const [{ askForSetup }, setup] = await Promise.all([
        import("./chat-setup-dialog.js"),
        conversation ? this.api.setup(conversation.id) : { ...this.assistant, ...this.#own },
      ]);
      askForSetup(this.dialog, setup, conversation ? null : (this.assistant ?? {}), (changes) => this.#save(conversation, changes));
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
  }

  /**
   * @param {{id: string} | null} conversation
   * @param {NewChat} changes
   */
  async #save(conversation, changes) {
    if (conversation) await this.api.changeSetup(conversation.id, changes);
    else this.#own = { ...changes, ...(this.#own.tool_servers && { tool_servers: this.#own.tool_servers }) };
    this.emit("changed");
    if (conversation) this.say(gettext("Saved. It counts from the next answer on."));
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
