// @ts-check
/**
 * What the next message is to be answered from, chat by chat: collections, which stay for the message after
 * it, documents, and files that are being brought, which are for one message. No DOM; emits "changed", and
 * "picked" with the chat where somebody did that and not another chat that is shown.
 *
 * @typedef {import("./sources.js").Named} Named
 * @typedef {import("./sources.js").Sources} Sources
 * @typedef {object} Attachment a file on its way
 * @property {number} key
 * @property {string} name
 * @property {"sending" | "reading" | "ready" | "failed"} state
 * @property {number | null} progress 0–1, null where nobody knows
 * @property {string} problem
 * @property {string | null} document its id, once the server has it
 * @property {File | null} file null where another try cannot help
 * @property {string | null} text what was pasted, if the file is made of that
 * @typedef {{collections: Named[], documents: Named[], attachments: Attachment[]}} Picked
 */

import { isPicture } from "./document-links.js";
import { Emitter } from "./emitter.js";

/** As many as the server takes for one message. */
export const MAX_PICKED = 20;

export class PickedSources extends Emitter {
  /** Whether the chat takes any: a file that is brought stays, and a temporary chat leaves nothing. */
  takesNoFiles = false;
  /** Whether the model that answers next sees pictures. @type {() => boolean} */
  sees = () => false;
  /** @type {Map<string | null, Picked>} chat → what is picked in it */
  #chats = new Map();
  /** Chats of which it is not known yet what they are answered from. @type {Set<string | null>} */
  #unknown = new Set();
  /** @type {string | null} */
  #chat = null;
  #numAttached = 0;

  /** @param {string | null} [chat] @returns {Picked} */
  #in(chat = this.#chat) {
    return this.#chats.get(chat) ?? { collections: [], documents: [], attachments: [] };
  }

  get collections() {
    return this.#in().collections;
  }

  get documents() {
    return this.#in().documents;
  }

  get attachments() {
    return this.#in().attachments;
  }

  get size() {
    return sizeOf(this.#in());
  }

  /** Why nothing can be sent now. @returns {"waiting" | "failed" | null} */
  get holds() {
    const states = this.attachments.map((one) => this.stateOf(one));
    if (states.includes("failed")) return "failed";
    return states.some((state) => state !== "ready") ? "waiting" : null;
  }

  /** Whether a file would be lost with the page, in whichever chat it is. */
  get wouldLose() {
    return [...this.#chats.values()].some(({ attachments }) => attachments.some((one) => this.stateOf(one) !== "ready"));
  }

  /**
   * What a file is for the next message: a model that sees needs nothing to be read in a picture.
   * @param {Attachment} attachment
   */
  stateOf(attachment) {
    const { state, document, name } = attachment;
    return document && isPicture(name) && this.sees() ? "ready" : state;
  }

  /**
   * Another chat is shown.
   * @param {string | null} chat
   * @param {Sources | null} sources what was picked for it before this page was loaded, or the collections of
   *   its last question; null: that is not known yet
   */
  open(chat, sources, takesNoFiles = false) {
    this.takesNoFiles = takesNoFiles;
    this.#chat = chat;
    const isNew = !this.#chats.has(chat);
    const isLate = sources && this.#unknown.delete(chat);
    if (isNew && sources) this.#chats.set(chat, { ...sources, attachments: [] });
    else if (isNew) this.#unknown.add(chat);
    else if (isLate) {
      this.takeBack(sources); // beside what was picked meanwhile
      this.#tell(chat);
    }
    this.emit("changed");
  }

  /** The new chat has got its address. @param {string} chat */
  move(chat) {
    this.#chats.set(chat, this.#in());
    this.#chats.delete(this.#chat);
    this.#chat = chat;
  }

  /**
   * @param {"collections" | "documents"} kind
   * @param {Named} named
   * @param {string | null} [chat]
   * @returns {boolean} false where there are too many
   */
  add(kind, { id, name }, chat = this.#chat) {
    const picked = this.#in(chat);
    if (picked[kind].some((one) => one.id === id)) return true;
    if (sizeOf(picked) >= MAX_PICKED) return false;
    this.#put({ [kind]: [...picked[kind], { id, name }] }, chat);
    return true;
  }

  /**
   * Collections that came with something make room for those of another.
   * @param {Named[]} before
   * @param {Named[]} now
   */
  swap(before, now) {
    const gone = new Set(before.map(({ id }) => id));
    for (const one of this.collections.filter(({ id }) => gone.has(id))) this.remove(one);
    for (const one of now) this.add("collections", one);
  }

  /**
   * A file begins to be brought.
   * @param {string} name
   * @param {{file?: File, text?: string}} [made] what it is made of
   * @returns {Attachment | null} null where there are too many
   */
  attach(name, { file, text } = {}) {
    if (this.size >= MAX_PICKED) return null;
    /** @type {Attachment} */
    const attachment = {
      key: ++this.#numAttached, name, state: "sending", progress: 0, problem: "", document: null, file: file ?? null, text: text ?? null,
    };
    this.#put({ attachments: [...this.attachments, attachment] });
    return attachment;
  }

  /**
   * A file has got further, in whichever chat it is.
   * @param {Attachment} attachment
   * @param {Partial<Attachment>} change
   */
  change(attachment, change) {
    const before = this.stateOf(attachment);
    Object.assign(attachment, change);
    this.emit("changed");
    const [chat] = [...this.#chats].find(([, { attachments }]) => attachments.includes(attachment)) ?? [];
    const isReady = before !== "ready" && this.stateOf(attachment) === "ready";
    if (isReady && chat !== undefined) this.#tell(chat);
  }

  /** Whether a file is still wanted. @param {Attachment} attachment */
  has(attachment) {
    return [...this.#chats.values()].some(({ attachments }) => attachments.includes(attachment));
  }

  /** @param {Named | Attachment} entry one of those that are picked */
  remove(entry) {
    const { collections, documents, attachments } = this.#in();
    const isOther = (/** @type {Named | Attachment} */ one) => one !== entry;
    this.#put({
      collections: collections.filter(isOther), documents: documents.filter(isOther), attachments: attachments.filter(isOther),
    });
  }

  /** The last one goes. @returns {boolean} whether there was one */
  removeLast() {
    const last = [...this.collections, ...this.documents, ...this.attachments].at(-1);
    if (last) this.remove(last);
    return last !== undefined;
  }

  /** What goes with the message that is sent now. @returns {Sources | null} */
  take() {
    if (!this.size) return null;
    const sources = this.ready;
    this.#put({ documents: [], attachments: [] });
    return sources;
  }

  /** What can be answered from now. */
  get ready() {
    return this.readyIn(this.#chat);
  }

  /** @param {string | null} chat @returns {Sources} */
  readyIn(chat) {
    const { collections, documents, attachments } = this.#in(chat);
    const isReady = attachments.filter((one) => this.stateOf(one) === "ready");
    const attached = isReady.flatMap(({ document: id, name }) => (id ? [{ id, name }] : []));
    return { collections, documents: [...documents, ...attached] };
  }

  /**
   * A message comes back, and what it was to be answered from.
   * @param {Sources | null} [sources]
   * @param {string | null} [chat]
   */
  takeBack(sources, chat = this.#chat) {
    for (const one of sources?.collections ?? []) this.add("collections", one, chat);
    for (const one of sources?.documents ?? []) this.add("documents", one, chat);
  }

  /** The chat is gone. @param {string} chat */
  forget(chat) {
    this.#chats.delete(chat);
  }

  /**
   * @param {Partial<Picked>} change
   * @param {string | null} [chat]
   */
  #put(change, chat = this.#chat) {
    this.#chats.set(chat, { ...this.#in(chat), ...change });
    this.emit("changed");
    this.#tell(chat);
  }

  /** Not while it is only half of what the chat is answered from. @param {string | null} chat */
  #tell(chat) {
    if (!this.#unknown.has(chat)) this.emit("picked", chat);
  }
}

/** @param {Picked} picked */
function sizeOf({ collections, documents, attachments }) {
  return collections.length + documents.length + attachments.length;
}
