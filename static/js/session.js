// @ts-check
/**
 * What a tab does with the socket: shows one conversation, sends, follows and stops runs, and keeps
 * up with other tabs. It has no DOM: it emits
 *   "path"          messages came, went or were replaced
 *   "message" id    the text or state of one message changed
 *   "opened"        another conversation is shown
 *   "accepted"      {clientId, conversation, isNew: the shown chat has just got its address}
 *   "rejected"      {text, error, isShown}
 *   "conversations" a summary changed; "deleted" id
 *   "models"        model states
 *   "reconnected"   what other tabs did meanwhile may have been missed
 *   "error" {message}
 *
 * @typedef {import("./conversation-store.js").Conversation} Conversation
 * @typedef {import("./conversation-store.js").Message} Message
 */

import { ConversationStore } from "./conversation-store.js";
import { Emitter } from "./emitter.js";
import { hasEnded } from "./run-state.js";

export class ChatSession extends Emitter {
  /** @type {ConversationStore} */
  store = new ConversationStore(null);
  /** @type {any[]} */
  models = [];

  /** @type {Map<string, ConversationStore>} client id → where it was sent */
  #sentFrom = new Map();
  /** @type {Set<string>} client ids to stop as soon as they have a run */
  #stopEarly = new Set();
  /** @type {Set<string>} runs whose events are asked for again */
  #catchingUp = new Set();
  #wasConnected = false;
  #isReading = false;
  #isStale = false;

  /**
   * @param {import("./socket.js").ChatSocket} socket
   * @param {import("./api.js").Api} api
   */
  constructor(socket, api) {
    super();
    this.socket = socket;
    this.api = api;
    socket.on("state", (state) => state === "open" && this.#connected());
    socket.on("hello", ({ models }) => this.#setModels(models));
    socket.on("models.changed", ({ models }) => this.#setModels(models));
    socket.on("message.accepted", (frame) => this.#accepted(frame));
    socket.on("run.event", (frame) => this.#event(frame));
    socket.on("run.phase", (frame) => this.#phase(frame));
    socket.on("run.reset", ({ run }) => this.store.restart(run));
    socket.on("run.ended", (frame) => this.#endedLongAgo(frame));
    socket.on("conversation.changed", (frame) => this.#changed(frame));
    socket.on("conversation.deleted", ({ id }) => this.emit("deleted", id));
    socket.on("error", (frame) => this.#error(frame));
  }

  // --- actions -----------------------------------------------------------------------------

  /**
   * Show a conversation, or a new chat, instead of the one before.
   * @param {Conversation | null} conversation
   * @param {Message[]} [messages]
   */
  open(conversation, messages = []) {
    for (const { run } of this.store.liveRuns) this.socket.unfollow(run);
    const waiting = [...this.#sentFrom.values()].find(
      (store) => conversation !== null && store.conversation?.id === conversation.id,
    );
    this.store = waiting ?? new ConversationStore(conversation);
    this.store.merge(messages);
    this.#followLiveRuns();
    this.emit("opened");
  }

  /**
   * Send a message: it is on the screen when this returns.
   * @param {{text: string, model: string | null, clientId: string, parent?: string | null}} message
   */
  send(message) {
    const frame = this.store.addSent(message);
    this.#sentFrom.set(frame.client_id, this.store);
    this.socket.send(frame);
    this.emit("path");
  }

  /**
   * Ask again what an answer was asked.
   * @param {{answer: string, model: string | null, clientId: string}} retry
   */
  retry({ answer, model, clientId }) {
    const asked = this.store.shown(this.store.shown(answer)?.parent ?? null);
    if (asked) this.send({ text: asked.text, model, clientId, parent: asked.parent });
  }

  /**
   * Stop the answer that is being written.
   * @param {number} [shown] how many characters of its text are on the screen
   */
  stop(shown) {
    const live = this.store.liveRun;
    if (live) this.#stopRun(this.store, live.run, shown);
    for (const { client_id } of this.store.unaccepted) this.#stopEarly.add(client_id);
  }

  // --- what the server says ----------------------------------------------------------------

  /** The socket follows known runs again by itself; the rest is ours. */
  #connected() {
    for (const store of this.#sentFrom.values()) {
      for (const frame of store.unaccepted) this.socket.send(frame);
    }
    for (const [run, chars] of this.store.stopping) {
      this.socket.send({ type: "run.stop", run, chars });
    }
    if (this.#wasConnected) {
      this.#refresh();
      this.emit("reconnected");
    }
    this.#wasConnected = true;
  }

  /** @param {any[]} models */
  #setModels(models) {
    this.models = models;
    this.emit("models", models);
  }

  /** @param {any} frame */
  #accepted(frame) {
    const store = this.#sentFrom.get(frame.client_id);
    this.#sentFrom.delete(frame.client_id);
    const isNew = store !== undefined && store.conversation === null;
    if (!store?.accept(frame)) return;
    const { conversation, client_id: clientId, run } = frame;
    const isShown = store === this.store;
    if (isShown) this.#keepUp(run);
    else this.socket.send({ type: "run.unfollow", run });
    if (this.#stopEarly.delete(clientId)) this.#stopRun(store, run, 0);
    this.emit("accepted", { clientId, conversation, isNew: isNew && isShown });
    this.emit("conversations", conversation);
    if (isShown) this.emit("path");
  }

  /** @param {{run: string, message: string, seq: number, event: any}} frame */
  #event({ run, message, seq, event }) {
    const outcome = this.store.apply(run, seq, event);
    if (outcome === "gap") this.#catchUp(run);
    if (outcome === "unknown" || outcome === "gap") return;
    this.#catchingUp.delete(run);
    this.socket.acknowledge(run, seq);
    if (outcome === "duplicate") return;
    const state = this.store.runs.get(run);
    if (state && hasEnded(state)) this.socket.forget(run);
    this.emit("message", message);
  }

  /** @param {any} frame */
  #phase({ run, phase }) {
    const state = this.store.runs.get(run);
    if (!state || hasEnded(state)) return;
    this.store.phases.set(run, phase);
    this.emit("message", state.message);
  }

  /**
   * Its events are gone: the saved message is the truth.
   * @param {{run: string, message: Message}} frame
   */
  #endedLongAgo({ run, message }) {
    this.socket.forget(run);
    if (!this.store.runs.has(run)) return;
    this.store.mergeOne(message);
    this.emit("message", message.id);
  }

  /** @param {{conversation: Conversation, running: string[]}} frame */
  #changed({ conversation, running }) {
    this.emit("conversations", { ...conversation, running });
    if (conversation.id !== this.store.conversation?.id) return;
    this.store.conversation = conversation;
    this.#refresh();
  }

  /** @param {{code: string, message: string, client_id?: string}} error */
  #error(error) {
    const store = error.client_id ? this.#sentFrom.get(error.client_id) : undefined;
    if (!store || !error.client_id) {
      this.emit("error", error);
      return;
    }
    this.#sentFrom.delete(error.client_id);
    this.#stopEarly.delete(error.client_id);
    const text = store.reject(error.client_id);
    this.emit("rejected", { text, error, isShown: store === this.store });
    this.emit("path");
  }

  // --- keeping up --------------------------------------------------------------------------

  /**
   * Read the shown conversation again, and follow runs that are new to this tab. News that come
   * while one reading is under way are covered by one more.
   */
  async #refresh() {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isStale) {
      this.#isStale = false;
      await this.#read(this.store);
    }
    this.#isReading = false;
  }

  /** @param {ConversationStore} store */
  async #read(store) {
    const id = store.conversation?.id;
    if (!id) return;
    try {
      const { conversation, messages } = await this.api.conversation(id);
      store.conversation = conversation;
      store.merge(messages);
    } catch (error) {
      this.emit("error", error);
      return;
    }
    if (store !== this.store) return;
    this.#followLiveRuns();
    this.emit("path");
  }

  #followLiveRuns() {
    for (const { run } of this.store.liveRuns) {
      if (!this.socket.follows(run)) this.socket.follow(run, () => this.#seqOf(run));
    }
  }

  /** @param {string} run */
  #keepUp(run) {
    if (this.store.runs.has(run)) this.socket.keep(run, () => this.#seqOf(run));
  }

  /** @param {string} run */
  #catchUp(run) {
    if (this.#catchingUp.has(run)) return; // asked already: what still arrives is also behind the gap
    this.#catchingUp.add(run);
    this.socket.follow(run, () => this.#seqOf(run));
  }

  /** @param {string} run */
  #seqOf(run) {
    return this.store.runs.get(run)?.seq ?? 0;
  }

  /**
   * @param {ConversationStore} store
   * @param {string} run
   * @param {number} [shown]
   */
  #stopRun(store, run, shown) {
    if (store.stopping.has(run)) return;
    const chars = store.stop(run, shown);
    this.socket.send({ type: "run.stop", run, chars });
    const message = store.runs.get(run)?.message;
    if (store === this.store && message) this.emit("message", message);
  }
}
