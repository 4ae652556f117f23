// @ts-check
/**
 * Which model answers next: chosen in this chat, else the chat's own, else the one that its reader chose
 * last, in whatever browser; and which answer beside it, which outlives a reload.
 */

/** As many as the server takes (chat/frames.py). */
const MAX_BESIDE = 3;
const MAX_PINNED = 50; // chat/personal_api.py
const BESIDE = "vitrine.beside";

export class ModelChoice {
  /** @type {any[]} model states of docs/socket.md */
  models = [];
  /** Names of those that stand first where one is chosen. @type {string[]} */
  pinned = [];
  #default = "";
  #here = "";
  #chat = "";
  /** @type {string[]} names of those that answer too in this chat */
  #beside = [];

  /**
   * @param {(chosen: {default_model?: string, pinned_models?: string[]}) => void} save with the account
   * @param {Storage | undefined} [storage] of this tab
   */
  constructor(save, storage = tabStorage()) {
    this.save = save;
    this.storage = storage;
  }

  /** @param {{default: string, pinned: string[]}} chosen what the account had, as the page was made */
  begin({ default: name, pinned }) {
    this.#default = name;
    this.pinned = pinned;
  }

  /**
   * The state of the model that answers next, or null when there is none at all.
   * @param {string} [ofConversation] the model that the conversation had so far
   */
  current(ofConversation = "") {
    const wanted = [this.#here, ofConversation, this.#default];
    const names = wanted.filter((name) => this.models.some((model) => model.name === name));
    return (
      this.models.find((model) => model.name === names[0]) ??
      this.models.find((model) => model.default) ??
      this.models[0] ??
      null
    );
  }

  /**
   * Choose for this chat, and for new ones. Returns the state of the model.
   * @param {string} name
   */
  choose(name) {
    this.#here = name;
    if (name !== this.#default) this.save({ default_model: (this.#default = name) });
    return this.models.find((model) => model.name === name);
  }

  /**
   * Choose for this chat alone.
   * @param {string} name
   */
  chooseHere(name) {
    this.#here = name;
  }

  /** @param {string} name of a model that stands first from now on, or no more */
  togglePin(name) {
    const others = this.pinned.filter((other) => other !== name);
    const pinned = others.length < this.pinned.length ? others : [...others, name];
    if (pinned.length <= MAX_PINNED) this.pinned = pinned;
    this.save({ pinned_models: pinned }); // where they are too many the server says so
  }

  /**
   * Those that answer beside a model, side by side, in the order in which they were chosen.
   * @param {string | undefined} model
   */
  beside(model) {
    const known = this.models.map(({ name }) => name);
    return this.#beside.filter((name) => name !== model && known.includes(name));
  }

  /**
   * Have a model answer too from now on, or no more. Returns false where as many do as can.
   * @param {string} name
   */
  toggleBeside(name) {
    const others = this.#beside.filter((other) => other !== name);
    const isOn = others.length < this.#beside.length;
    if (!isOn && others.length === MAX_BESIDE) return false;
    this.#beside = isOn ? others : [...others, name];
    this.#keep({ [this.#chat]: this.#beside });
    return true;
  }

  /** Another chat is shown. @param {string | null} chat null: a new one */
  open(chat) {
    this.#here = "";
    this.#chat = chat ?? "";
    this.#beside = this.#kept()[this.#chat] ?? [];
  }

  /** The new chat has got its address. @param {string} chat */
  moveTo(chat) {
    this.#keep({ [this.#chat]: [], [chat]: this.#beside });
    this.#chat = chat;
  }

  /** @param {string} name */
  titleOf(name) {
    return this.models.find((model) => model.name === name)?.title ?? name;
  }

  /** @returns {Record<string, string[]>} by chat */
  #kept() {
    try {
      return JSON.parse(this.storage?.getItem(BESIDE) ?? "{}");
    } catch {
      return {}; // forbidden, or not ours
    }
  }

  /** @param {Record<string, string[]>} changed */
  #keep(changed) {
    const kept = Object.entries({ ...this.#kept(), ...changed }).filter(([, names]) => names.length);
    try {
      this.storage?.setItem(BESIDE, JSON.stringify(Object.fromEntries(kept)));
    } catch {
      return; // then a reload forgets it
    }
  }
}

/** It throws where storage is forbidden. */
function tabStorage() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}
