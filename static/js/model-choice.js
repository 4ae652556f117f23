// @ts-check
/** Which model answers next: chosen in this chat, else the chat's own, else the reader's last one. */

import { preference, remember } from "./preferences.js";

export class ModelChoice {
  /** @type {any[]} model states of docs/socket.md */
  models = [];
  #here = "";

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

  /** Another chat is shown. */
  forget() {
    this.#here = "";
  }

  /** @param {string} name */
  titleOf(name) {
    return this.models.find((model) => model.name === name)?.title ?? name;
  }
}
