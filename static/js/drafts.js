// @ts-check
/**
 * What one account has written in this browser and the server does not have yet, chat by chat: what
 * is typed and, apart from it, what was sent and neither accepted nor refused. Sent again under its
 * client id, after a reload say, it is still one message.
 *
 * @typedef {{text: string, clientId: string}} Sent
 * @typedef {{typed: string, sent: Sent[]}} Draft
 */

import { forgetAll, preference, remember } from "./preferences.js";

export class Drafts {
  #isClosed = false;

  /** @param {string} user id of the account */
  constructor(user) {
    this.user = user;
  }

  /**
   * @param {string | null} conversation null: the new chat
   * @returns {Draft}
   */
  of(conversation) {
    return { typed: "", sent: [], ...JSON.parse(preference(this.#nameOf(conversation)) ?? "{}") };
  }

  /**
   * @param {string | null} conversation
   * @param {string} typed all that is in the box
   */
  type(conversation, typed) {
    this.#write(conversation, { ...this.of(conversation), typed });
  }

  /**
   * @param {string | null} conversation
   * @param {Sent} sent
   */
  addSent(conversation, sent) {
    const draft = this.of(conversation);
    this.#write(conversation, { ...draft, sent: [...draft.sent, sent] });
  }

  /**
   * The server has answered. Returns whether it was waited for.
   * @param {string | null} conversation
   * @param {string} clientId
   */
  dropSent(conversation, clientId) {
    const draft = this.of(conversation);
    const sent = draft.sent.filter((other) => other.clientId !== clientId);
    this.#write(conversation, { ...draft, sent });
    return sent.length < draft.sent.length;
  }

  /** The chat is gone. @param {string} conversation */
  forget(conversation) {
    remember(this.#nameOf(conversation), null);
  }

  /** The account has signed out: nothing stays, and nothing is kept from now on. */
  close() {
    this.#isClosed = true;
    forgetAll(`draft.${this.user}.`);
  }

  /**
   * @param {string | null} conversation
   * @returns {`draft.${string}`}
   */
  #nameOf(conversation) {
    return `draft.${this.user}.${conversation ?? "new"}`;
  }

  /**
   * @param {string | null} conversation
   * @param {Draft} draft
   */
  #write(conversation, draft) {
    if (this.#isClosed) return;
    const isEmpty = !draft.typed.trim() && !draft.sent.length;
    remember(this.#nameOf(conversation), isEmpty ? null : JSON.stringify(draft));
  }
}
