// @ts-check
/**
 * Which model answers next: chosen in this chat, else the chat's own, else the reader's last one; and
 * which answer beside it.
 */

import { preference, remember } from "./preferences.js";

/** As many as the server takes (chat/frames.py). */
const MAX_BESIDE = 3;

export class ModelChoice {
  /** @type {any[]} model states of docs/socket.md */
  models = [];
  #here = "";
  /** @type {string[]} names of those that answer too in this chat */
  #beside = [];

  /**
   * The state of the model that answers next, or null when there is none at all.
   * @param {string} [ofConversation] the model that the conversation had so far
   */
  current(ofConversation = "") {
    const wanted = [this.#here, ofConversation, preference("model")];
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
    remember("model", name);
    return this.models.find((model) => model.name === name);
  }

  /**
   * Choose for this chat alone.
   * @param {string} name
   */
  chooseHere(name) {
    this.#here = name;
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
    return true;
  }

  /** Another chat is shown. */
  forget() {
    this.#here = "";
    this.#beside = [];
  }

  /** @param {string} name */
  titleOf(name) {
    return this.models.find((model) => model.name === name)?.title ?? name;
  }
}
