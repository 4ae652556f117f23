// @ts-check
/**
 * A temporary chat is in this page alone: what would change its tree on the server changes it here.
 *
 * @typedef {import("./conversation-store.js").ConversationStore} ConversationStore
 * @typedef {import("./conversation-store.js").Message} Message
 */

import { pathTo } from "./branches.js";

/** What message-changes.js needs of Api, for the chat in this page. */
export class TemporaryTree {
  /** @type {Map<string, Message[]>} deletion → messages as they were */
  #deleted = new Map();

  /** @param {() => ConversationStore} store */
  constructor(store) {
    this.store = store;
  }

  /**
   * @param {string} id
   * @param {string} text
   * @param {string} clientId
   */
  editAnswer(id, text, clientId) {
    const store = this.store();
    const before = /** @type {Message} */ (store.messages.get(id));
    /** @type {Message} */
    const message = {
      ...before, id: clientId, key: undefined, text, parts: [{ type: "text", text }], run: null,
      status: "complete", finish_reason: "stop", edited: true, error: null, usage: null,
      timings: null, chosen: store.nextChoice(),
    };
    return { conversation: null, message };
  }

  /**
   * @param {string} id
   * @param {{deletion: string, replies: boolean}} how
   */
  deleteMessage(id, { deletion, replies }) {
    const store = this.store();
    const gone = [...store.messages.values()].filter(
      (message) => message.id === id || (replies && pathTo(store.messages, message.id).some((m) => m.id === id)),
    );
    this.#deleted.set(deletion, gone);
    for (const message of gone) {
      if (replies) store.drop(message.id);
      else store.put({ ...message, status: "deleted", text: "", parts: [] });
    }
    return { conversation: null };
  }

  /**
   * @param {null} conversation
   * @param {string} deletion
   */
  restore(conversation, deletion) {
    for (const message of this.#deleted.get(deletion) ?? []) this.store().put(message);
    return { conversation };
  }
}
