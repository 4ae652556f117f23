// @ts-check
/**
 * The messages of a conversation in this tab, their siblings, and the branch that is shown. Children
 * and the branch are derived (branches.js) and kept until something changes.
 *
 * @typedef {import("./conversation-store.js").Message} Message
 */

import { chosenPath, childrenOf, pathTo, undecided } from "./branches.js";

export class MessageTree {
  /** @type {Map<string, Message>} oldest first; changed by `put`, `drop` and `order` alone */
  messages = new Map();
  /** @type {import("./branches.js").Children | null} null: to be derived anew */
  #derived = null;
  /** @type {string[] | null} */
  #shownPath = null;
  /** @type {string | null} a message whose branch stays, whatever another tab chooses */
  #held = null;

  /** @param {Message} message new or changed */
  put(message) {
    this.messages.set(message.id, message);
    this.#derived = this.#shownPath = null;
  }

  /** @param {string} id */
  drop(id) {
    this.messages.delete(id);
    this.#derived = this.#shownPath = null;
  }

  /**
   * Put these first, in this order, as they are on the server; what it does not have yet follows.
   * @param {string[]} ids
   */
  order(ids) {
    const all = this.messages;
    this.messages = new Map();
    for (const id of [...ids, ...all.keys()]) {
      const message = all.get(id);
      if (message) this.put(message);
    }
  }

  /** Ids of the shown branch, from the first message to its end. */
  get pathIds() {
    const held = new Set(pathTo(this.messages, this.#held).map(({ id }) => id));
    return (this.#shownPath ??= chosenPath(this.#children, held));
  }

  /** The message at the end of the shown branch, null in an empty chat. */
  get leaf() {
    return this.pathIds.at(-1) ?? null;
  }

  /**
   * All versions of a message: those that follow the same one, oldest first.
   * @param {string} id
   * @returns {Message[]}
   */
  siblings(id) {
    const message = this.messages.get(id);
    return message ? (this.#children.get(message.parent) ?? []) : [];
  }

  /**
   * Answers that stand side by side until one is chosen, this one among them.
   * @param {string} id
   * @returns {Message[]} none, or at least two
   */
  beside(id) {
    const tied = undecided(this.siblings(id));
    return tied.some((message) => message.id === id) ? tied : [];
  }

  /** @param {string} id */
  hasReplies(id) {
    return this.#children.has(id);
  }

  /**
   * Show the branch that leads to a message, at once; the server hears of it apart.
   * @param {string} id
   */
  choose(id) {
    const chosen = this.nextChoice();
    for (const message of pathTo(this.messages, id)) {
      const others = this.siblings(message.id).filter((other) => other.id !== message.id);
      if (!others.every((other) => other.chosen < message.chosen)) this.put({ ...message, chosen });
    }
  }

  /**
   * Keep a message on the shown branch while somebody works on it; null lets go.
   * @param {string | null} id
   */
  hold(id) {
    this.#held = id;
    this.#shownPath = null;
  }

  /** The version of the conversation, as far as is known. */
  get version() {
    return 0;
  }

  /** Newer than every choice so far, as the version will be that the server gives it. */
  nextChoice() {
    let newest = this.version;
    for (const { chosen } of this.messages.values()) newest = Math.max(newest, chosen);
    return newest + 1;
  }

  get #children() {
    return (this.#derived ??= childrenOf(this.messages.values()));
  }
}
