// @ts-check
/**
 * What one account has written in this browser and the server does not have yet, chat by chat: what
 * is typed, what was picked to answer it from, what is written in the place of messages, and, apart from these, what waits for an
 * answer to end, and what was sent and neither accepted nor refused. Sent again under its client id, after a reload say, it is
 * still one message. What the browser does not store is kept as long as the page.
 *
 * @typedef {{text: string, clientId: string, setup?: import("./chat-setup.js").NewChat,
 *   sources?: import("./sources.js").Sources, parent?: string | null, edits?: string}} Sent
 *   parent: where it is not the end of the branch, for a question that was edited; edits: which one
 * @typedef {{typed: string, sources: import("./sources.js").Sources | null, editing: Record<string, string>, queued: Sent[],
 *   sent: Sent[]}} Draft
 *   sources: null where nothing was picked anew; editing: message → the text that is written in its place
 */

import { forgetAll, preference, remember } from "./preferences.js";

/** The name under which a temporary chat is written; it is never stored. */
export const TEMPORARY = "temporary";

export class Drafts {
  #isClosed = false;
  /** What may not or cannot be stored. @type {Map<string | null, Draft>} */
  #unstored = new Map();
  /** @type {Map<string | null, string>} chat → what is typed, as this page last read or wrote it */
  #known = new Map();
  /** @type {Map<string, string>} chat that is gone → its draft, in memory alone */
  #gone = new Map();

  /** @param {string} user id of the account */
  constructor(user) {
    this.user = user;
  }

  /**
   * @param {string | null} conversation null: the new chat
   * @returns {Draft}
   */
  of(conversation) {
    const empty = { typed: "", sources: null, editing: {}, queued: [], sent: [] };
    return this.#unstored.get(conversation) ?? { ...empty, ...JSON.parse(preference(this.#nameOf(conversation)) ?? "{}") };
  }

  /**
   * What is typed in a chat, to be written on.
   * @param {string | null} conversation
   */
  typedIn(conversation) {
    const { typed } = this.of(conversation);
    this.#known.set(conversation, typed);
    return typed;
  }

  /**
   * Where nobody has typed since, nothing is written: another page may have.
   * @param {string | null} conversation
   * @param {string} typed all that is in the box
   */
  type(conversation, typed) {
    if (this.#known.get(conversation) === typed) return;
    this.#known.set(conversation, typed);
    this.#write(conversation, { ...this.of(conversation), typed });
  }

  /**
   * @param {string | null} conversation
   * @param {import("./sources.js").Sources | null} sources
   */
  pick(conversation, sources) {
    this.#write(conversation, { ...this.of(conversation), sources });
  }

  /**
   * @param {string | null} conversation
   * @param {string} message in whose place something is written
   * @param {string | null} text null: it is saved, or it stays as it was
   */
  edit(conversation, message, text) {
    const draft = this.of(conversation);
    const { [message]: before, ...editing } = draft.editing;
    if (text === (before ?? null)) return;
    this.#write(conversation, { ...draft, editing: text === null ? editing : { ...editing, [message]: text } });
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
   * The server has answered. Returns what was waited for, if it was.
   * @param {string | null} conversation
   * @param {string} clientId
   */
  dropSent(conversation, clientId) {
    const draft = this.of(conversation);
    const sent = draft.sent.filter((other) => other.clientId !== clientId);
    this.#write(conversation, { ...draft, sent });
    return draft.sent.find((other) => other.clientId === clientId) ?? null;
  }

  /**
   * It is sent when the answer that is being written has ended.
   * @param {string | null} conversation
   * @param {Sent} message
   */
  addQueued(conversation, message) {
    const draft = this.of(conversation);
    this.#write(conversation, { ...draft, queued: [...draft.queued, message] });
  }

  /**
   * The first message that waits counts as sent from now on. Null if none waits, or another tab was
   * faster: one message at a time is on its way, for the next one answers what comes of it.
   * @param {string | null} conversation
   * @returns {Sent | null}
   */
  takeQueued(conversation) {
    const draft = this.of(conversation);
    const [next, ...queued] = draft.queued;
    if (!next || draft.sent.length) return null;
    this.#write(conversation, { ...draft, queued, sent: [...draft.sent, next] });
    return next;
  }

  /**
   * @param {string | null} conversation
   * @param {string} clientId
   * @returns {Sent | null}
   */
  dropQueued(conversation, clientId) {
    const draft = this.of(conversation);
    const queued = draft.queued.filter((other) => other.clientId !== clientId);
    this.#write(conversation, { ...draft, queued });
    return draft.queued.find((other) => other.clientId === clientId) ?? null;
  }

  /**
   * A new chat has got its address: what waits in it goes there.
   * @param {string | null} from
   * @param {string} conversation
   */
  moveQueued(from, conversation) {
    const { queued } = this.of(from);
    if (!queued.length) return;
    this.#write(from, { ...this.of(from), queued: [] });
    const draft = this.of(conversation);
    this.#write(conversation, { ...draft, queued: [...draft.queued, ...queued] });
  }

  /** The chat is gone. @param {string} conversation */
  forget(conversation) {
    this.#known.set(conversation, "");
    this.#unstored.delete(conversation);
    const kept = preference(this.#nameOf(conversation));
    if (kept) this.#gone.set(conversation, kept);
    remember(this.#nameOf(conversation), null);
  }

  /** A chat that was gone may be back, and has its draft again. @param {string} conversation */
  restore(conversation) {
    const kept = this.#gone.get(conversation);
    if (!kept) return;
    this.#gone.delete(conversation);
    this.#known.delete(conversation);
    remember(this.#nameOf(conversation), kept);
  }

  /** The account has signed out: nothing stays, and nothing is stored from now on. */
  close() {
    this.#isClosed = true;
    this.#gone.clear();
    this.#known.clear(); // what stands in a box is kept again
    forgetAll(`draft.${this.user}.`);
  }

  /** It has signed in again. */
  open() {
    this.#isClosed = false;
    for (const [conversation, draft] of this.#unstored) this.#write(conversation, draft);
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
    const { typed, sources, editing, queued, sent } = draft;
    const isEmpty = !typed.trim() && !sources && !Object.keys(editing).length && !sent.length && !queued.length;
    const mayStore = conversation !== TEMPORARY && !this.#isClosed;
    const isStored = mayStore && remember(this.#nameOf(conversation), isEmpty ? null : JSON.stringify(draft));
    if (isStored || isEmpty) this.#unstored.delete(conversation);
    else this.#unstored.set(conversation, draft);
  }
}
