// @ts-check
/**
 * What a tab does with the socket: shows one conversation, sends, follows and stops runs, and keeps
 * up with other tabs. It has no DOM: it emits
 *   "path"          messages came, went or were replaced
 *   "message" id    the text or state of one message changed
 *   "opened" wanted another conversation is shown, perhaps for a message of it
 *   "accepted"      {clientId, conversation, isNew: the chat has just got its address, isShown}
 *   "rejected"      {text: null where none was sent, sources, error, clientId,
 *                   conversation: its id, null for a new chat}
 *   "conversations" a summary changed; "deleted" id
 *   "library"       folders or many conversations changed
 *   "models"        model states
 *   "subscribed"    news come from now on; those before may have been missed
 *   "stranger"      the session is somebody else's
 *   "error" {message}
 *
 * @typedef {import("./conversation-store.js").Conversation} Conversation
 * @typedef {import("./conversation-store.js").Message} Message
 */

import { ConversationStore } from "./conversation-store.js";
import { Emitter } from "./emitter.js";
import { gettext } from "./i18n.js";
import { hasEnded } from "./run-state.js";
import { acceptedHere, temporaryFrame } from "./temporary.js";

/** @param {ConversationStore} store */
const tooLarge = ({ isTemporary }) => ({
  code: "too_large",
  message: isTemporary
    ? gettext("This temporary chat is too long to go on: all of it is sent each time. Keep it, and go on there.")
    : gettext("The message is too long to be sent."),
});

const HASTE_MS = 700; // nobody reads a call in less

export class ChatSession extends Emitter {
  /** @type {ConversationStore} */
  store = new ConversationStore(null);
  /** @type {any[]} */
  models = [];
  /** @type {() => import("./chat-setup.js").NewChat} how the shown temporary chat is set up */
  setupOfTemporary = () => ({});

  user = "";

  /** @type {Map<string, ConversationStore>} client id → where it was sent */
  #sentFrom = new Map();
  /** The call of a tool that was decided about last, and when somebody last tried to. */
  #decided = { call: "", atMs: -Infinity };
  /** @type {Set<string>} client ids to stop as soon as they have a run */
  #stopEarly = new Set();
  /** @type {Set<string>} runs whose events are asked for again */
  #catchingUp = new Set();
  #wasSubscribed = false;
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
    socket.on("hello", ({ models, user }) => {
      if ((user ?? this.user) !== this.user) return this.emit("stranger"); // and nothing is sent
      this.#connected();
      this.#subscribed(models);
    });
    socket.on("models.changed", ({ models }) => this.#setModels(models));
    socket.on("message.accepted", (frame) => this.#accepted(frame));
    socket.on("answer.accepted", (frame) => this.#accepted(frame));
    socket.on("temporary.accepted", (frame) => this.#acceptedHere(frame));
    socket.on("run.event", (frame) => this.#event(frame));
    socket.on("run.phase", (frame) => this.#phase(frame));
    socket.on("run.reset", ({ run }) => this.#reset(run));
    socket.on("run.ended", (frame) => this.#endedLongAgo(frame));
    socket.on("conversation.changed", (frame) => this.#changed(frame));
    socket.on("conversation.deleted", ({ id }) => this.emit("deleted", id));
    socket.on("library.changed", () => this.emit("library"));
    socket.on("error", (frame) => this.#error(frame));
    socket.on("too-large", (frame) => this.#notUnderstood(tooLarge, frame?.client_id));
  }

  // --- actions -----------------------------------------------------------------------------

  /**
   * Show a conversation, or a new chat, instead of the one before.
   * @param {Conversation | null} conversation
   * @param {Message[]} [messages]
   * @param {string | null} [wanted] a message whose branch is shown
   */
  open(conversation, messages = [], wanted = null) {
    for (const { run } of this.store.liveRuns) this.#leave(run);
    const waiting = [...this.#sentFrom.values()].find(
      (store) => conversation !== null && store.conversation?.id === conversation.id,
    );
    this.store = waiting ?? new ConversationStore(conversation);
    this.store.merge(messages);
    if (wanted) this.store.choose(wanted);
    this.#followLiveRuns();
    this.emit("opened", wanted);
  }

  /** What the page began with may be a kept copy: it is read again as soon as the server is there. */
  doubt() {
    this.#wasSubscribed = true;
  }

  /** Show an empty chat that this page holds alone. */
  openTemporary() {
    for (const { run } of this.store.liveRuns) this.#leave(run);
    this.store = new ConversationStore(null);
    this.store.isTemporary = true;
    this.emit("opened");
  }

  /**
   * Compare the shown conversation with the newest list, and read it again if it has moved on.
   * @param {Conversation[]} newest
   */
  compare(newest) {
    const shown = this.store.conversation;
    const now = newest.find(({ id }) => id === shown?.id);
    if (!shown || !newest.length) return;
    if (!now) return void this.refresh(); // in a folder, in the archive, or far down the list
    this.store.conversation = now;
    this.emit("conversations", now);
    const isSame = String(now.running) === String(shown.running ?? []);
    if (now.version !== shown.version || now.updated_at !== shown.updated_at || !isSame) this.refresh();
  }

  /**
   * Send a message: it is on the screen when this returns.
   * @param {{text: string, model: string | null, clientId: string, beside?: string[],
   *   parent?: string | null, setup?: import("./chat-setup.js").NewChat,
   *   sources?: import("./sources.js").Sources | null}} message
   */
  send(message) {
    this.#ask(this.store.addSent(message));
  }

  /**
   * Have an answer written anew beside the one that is there, or a cut one gone on with.
   * @param {{answer: string, clientId: string, model?: string | null, wish?: string | null,
   *   goesOn?: boolean, without?: number[], confirms?: boolean}} retake
   */
  retake(retake) {
    this.#ask(this.store.addRetake(retake));
  }

  /** @param {import("./conversation-store.js").AskFrame} frame */
  #ask(frame) {
    this.#sentFrom.set(frame.client_id, this.store);
    this.#send(this.store, frame);
    this.emit("path");
  }

  /**
   * @param {ConversationStore} store
   * @param {import("./conversation-store.js").AskFrame} frame
   */
  #send(store, frame) {
    const setup = this.setupOfTemporary();
    this.socket.send(store.isTemporary ? { ...temporaryFrame(store, frame), ...setup } : frame);
  }

  /**
   * Whether a message of this tab waits for the server.
   * @param {string} clientId
   */
  isSending(clientId) {
    return this.#sentFrom.has(clientId);
  }

  /**
   * Show the branch that leads to a message, before the server knows.
   * @param {string} message
   */
  choose(message) {
    this.store.choose(message);
    this.emit("path");
  }

  /**
   * Take in what /api says a conversation is after a change.
   * @param {{conversation: Conversation | null, messages?: Message[], message?: Message}} changed
   *   no conversation: a temporary one
   */
  take({ conversation, messages, message }) {
    if (conversation) this.emit("conversations", conversation);
    if (conversation?.id !== this.store.conversation?.id) return;
    this.store.conversation = conversation;
    if (messages) this.store.merge(messages);
    if (message) this.store.mergeOne(message);
    this.emit("path");
  }

  /**
   * Stop the answers that are being written.
   * @param {(message: string) => number} [numShown] how many characters of an answer are on the screen
   */
  stop(numShown) {
    for (const { run, message } of this.store.shownRuns) {
      this.#stopRun(this.store, run, numShown?.(message));
    }
    for (const { client_id } of this.store.unaccepted) this.#stopEarly.add(client_id);
  }

  /**
   * Say whether the tool may be run that an answer waits for. The second click of two, or a key that is
   * held down, would tell of the next call, which nobody has read.
   * @param {string} message
   * @param {boolean} allow
   */
  decide(message, allow) {
    const run = this.store.shown(message)?.run;
    const phase = run ? this.store.phases.get(run) : null;
    if (phase?.phase !== "approval") return;
    const call = phase.detail;
    const before = this.#decided;
    const isHasty = call !== before.call && Date.now() - before.atMs < HASTE_MS;
    this.#decided = { call: isHasty ? before.call : call, atMs: Date.now() };
    if (!isHasty) this.socket.send({ type: "run.decide", run, call, allow });
  }

  // --- what the server says ----------------------------------------------------------------

  /** The socket follows known runs again by itself; the rest is ours. */
  #connected() {
    for (const store of this.#sentFrom.values()) {
      for (const frame of store.unaccepted) this.#send(store, frame);
    }
    for (const [run, chars] of this.store.stopping) {
      this.socket.send({ type: "run.stop", run, chars });
    }
  }

  /**
   * The server tells this tab all news from now on. What the page was made with may be older.
   * @param {any[]} models
   */
  #subscribed(models) {
    this.#setModels(models);
    if (this.#wasSubscribed) this.refresh();
    this.#wasSubscribed = true;
    this.emit("subscribed");
  }

  /** @param {any[]} models */
  #setModels(models) {
    this.models = models;
    this.emit("models", models);
  }

  /** @param {any} frame */
  #accepted(frame) {
    const { conversation, client_id: clientId, answers = [frame.answer] } = frame;
    const store = this.#sentFrom.get(clientId);
    this.#sentFrom.delete(clientId);
    const isNew = store !== undefined && store.conversation === null && !store.isTemporary;
    const wasSent = store?.accept(frame) ?? false;
    const runs = answers.map((/** @type {Message} */ answer) => answer.run ?? frame.run);
    // The server lets every sender follow.
    for (const run of runs) this.socket.keep(run, () => this.#seqOf(run));
    this.#followLiveRuns();
    if (!store || !wasSent) return;
    const isShown = store === this.store;
    if (this.#stopEarly.delete(clientId)) for (const run of runs) this.#stopRun(store, run, 0);
    this.emit("accepted", { clientId, conversation, isNew, isShown });
    if (conversation) this.emit("conversations", conversation);
    if (isShown) this.emit("path");
  }

  /** @param {{client_id: string, run: string}} frame */
  #acceptedHere(frame) {
    const store = this.#sentFrom.get(frame.client_id);
    if (store) this.#accepted(acceptedHere(store, frame));
    else this.#leave(frame.run);
  }

  /** @param {{run: string, message: string, seq: number, event: any}} frame */
  #event({ run, message, seq, event }) {
    const outcome = this.store.apply(run, seq, event);
    if (outcome === "unknown") this.#leave(run);
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

  /** @param {string} run */
  #reset(run) {
    this.#catchingUp.delete(run);
    const message = this.store.restart(run);
    if (message) this.emit("message", message);
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
    this.refresh();
  }

  /** @param {{code: string, message: string, client_id?: string, run?: string}} error */
  #error(error) {
    const { code, client_id: clientId = "", run } = error;
    const store = this.#sentFrom.get(clientId);
    if (store) this.#rejected(store, clientId, error);
    else if (run && code === "not_found") this.#lost(run, error);
    else if (code === "bad_frame" && !run && this.#sentFrom.size) this.#notUnderstood(() => error);
    else this.emit("error", error);
  }

  /**
   * Nobody may know whose frame it was. Of all frames only messages carry what people wrote (too much of
   * it, half a character): they come back, or they would be sent for ever.
   * @param {(store: ConversationStore) => {code: string, message: string}} errorOf
   * @param {string} [only] the client id, where it is known
   */
  #notUnderstood(errorOf, only) {
    for (const [clientId, store] of [...this.#sentFrom]) {
      if ((only ?? clientId) === clientId) this.#rejected(store, clientId, errorOf(store));
    }
  }

  /**
   * @param {ConversationStore} store
   * @param {string} clientId
   * @param {{code: string, message: string}} error
   */
  #rejected(store, clientId, error) {
    this.#sentFrom.delete(clientId);
    this.#stopEarly.delete(clientId);
    const { sources } = store.messages.get(`sent:${clientId}`) ?? {};
    const text = store.reject(clientId);
    try {
      this.emit("rejected", { text, sources, error, clientId, conversation: store.draftName });
    } finally {
      this.emit("path"); // what is on the screen must not wait for ever, whatever a listener did
    }
  }

  /**
   * The server has no such run: nothing more of it will come. What became of its answer is read.
   * @param {string} run
   * @param {{code: string, message: string}} error
   */
  #lost(run, error) {
    this.socket.forget(run);
    this.#catchingUp.delete(run);
    const message = this.store.fail(run, error);
    if (!message) return;
    this.emit("message", message);
    this.refresh();
  }

  // --- keeping up --------------------------------------------------------------------------

  /**
   * Read the shown conversation again, and follow runs that are new to this tab. News that come
   * while one reading is under way are covered by one more.
   */
  async refresh() {
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
      const { conversation, messages } = await this.api.conversation(id, true);
      store.merge(messages, conversation.version);
      if (conversation.version >= store.version) store.conversation = conversation;
    } catch (error) {
      this.emit("error", error);
      return;
    }
    if (store !== this.store) return;
    this.#followLiveRuns();
    this.emit("path");
  }

  /** Those that the shown conversation waits for, and no others: reading it may have ended one. */
  #followLiveRuns() {
    const live = this.store.liveRuns.map(({ run }) => run);
    for (const run of this.socket.followed) if (!live.includes(run)) this.#leave(run);
    for (const run of live) {
      if (!this.socket.follows(run)) this.socket.follow(run, () => this.#seqOf(run));
    }
  }

  /**
   * Nobody here waits for the run any more: events without an owner are never acknowledged.
   * @param {string} run
   */
  #leave(run) {
    this.#catchingUp.delete(run);
    this.socket.unfollow(run);
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
