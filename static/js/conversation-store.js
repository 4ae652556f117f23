// @ts-check
/**
 * One conversation in this tab: its tree of messages, the branch that is shown, what was sent and not
 * yet accepted, and the runs that write answers. Pure state: no socket, no DOM.
 *
 * @typedef {import("./run-state.js").RunState} RunState
 * @typedef {import("./conversation-types.js").Conversation} Conversation
 * @typedef {import("./conversation-types.js").Message} Message
 * @typedef {import("./conversation-types.js").SendFrame} SendFrame
 * @typedef {import("./conversation-types.js").RetakeFrame} RetakeFrame
 * @typedef {import("./conversation-types.js").AskFrame} AskFrame
 * @typedef {import("./conversation-types.js").Accepted} Accepted
 */

import { pathTo } from "./branches.js";
import { TEMPORARY } from "./drafts.js";
import { MessageTree } from "./message-tree.js";
import { clampText, countText } from "./parts.js";
import { applyEvent, hasEnded, newRun } from "./run-state.js";
import { citedBy, idsOf } from "./sources.js";

export class ConversationStore extends MessageTree {
  /** @type {Conversation | null} null until the first message of a new chat is accepted */
  conversation;
  /** It is held by this page alone (temporary.js), and never gets a conversation. */
  isTemporary = false;
  /** @type {Map<string, RunState>} */
  runs = new Map();
  /** @type {Map<string, any>} run → its latest phase */
  phases = new Map();
  /** @type {Map<string, number>} run → code points on the screen when stop was pressed */
  stopping = new Map();

  /** @type {Map<string, AskFrame>} client id → what was sent and not yet accepted */
  #sent = new Map();

  /**
   * @param {Conversation | null} conversation
   * @param {Message[]} messages of all branches, oldest first
   */
  constructor(conversation, messages = []) {
    super();
    this.conversation = conversation;
    this.merge(messages);
  }

  /** Under which name what is written for it is kept (drafts.js). */
  get draftName() {
    return this.isTemporary ? TEMPORARY : (this.conversation?.id ?? null);
  }

  get version() {
    return this.conversation?.version ?? 0;
  }

  /**
   * Take in all messages that the server has, oldest first. What it has no more goes, but for what
   * was sent or accepted while the reading was under way: that is newer than `version`.
   * @param {Message[]} messages
   * @param {number} [version] of the conversation when they were read
   */
  merge(messages, version = this.version) {
    const read = new Set(messages.map(({ id }) => id));
    for (const { id, chosen, status } of [...this.messages.values()]) {
      const isNewer = chosen > version || status === "sending";
      if (!read.has(id) && !isNewer) this.#forget(id);
    }
    for (const message of messages) this.mergeOne(message, version);
    this.order([...read]);
  }

  /**
   * A read that was under way when the run ended must not bring the unfinished answer back, nor one
   * that was under way when a branch was chosen the other branch.
   * @param {Message} message
   * @param {number} [version]
   */
  mergeOne(message, version = Infinity) {
    const known = this.messages.get(message.id);
    if (message.status === "running" && known && known.status !== "running") return;
    const chosen = known && known.chosen > version ? known.chosen : message.chosen;
    this.put({ ...message, chosen, key: known?.key });
    if (message.status !== "running") this.#forgetRunOf(message.id);
    else if (message.run && !this.runs.has(message.run)) {
      this.runs.set(message.run, newRun(message.run, message.id));
    }
  }

  /** The shown branch, from the first message to its end. @returns {Message[]} */
  path() {
    return this.pathIds.map((id) => /** @type {Message} */ (this.shown(id)));
  }

  /**
   * A message with what its run has written so far.
   * @param {string | null} id
   * @returns {Message | null}
   */
  shown(id) {
    const message = id ? this.messages.get(id) : undefined;
    return message ? this.#asShown(message) : null;
  }

  /**
   * What the numbers in an answer name.
   * @param {string} id
   * @returns {import("./citations.js").Citing}
   */
  citing(id) {
    const path = pathTo(this.messages, id).map((message) => this.#asShown(message));
    return { numbers: citedBy(path), isChecked: Boolean(path.at(-1)?.found) };
  }

  /** Runs that write what is shown at the end: one, or several side by side. */
  get shownRuns() {
    const leaf = this.leaf;
    if (leaf === null) return [];
    const beside = this.beside(leaf);
    const shown = beside.length ? beside : [/** @type {Message} */ (this.messages.get(leaf))];
    const runs = shown.map(({ run }) => (run ? this.runs.get(run) : undefined));
    return runs.filter((state) => state !== undefined).filter((state) => !hasEnded(state));
  }

  /** The first of them, null when nothing is being written. */
  get liveRun() {
    return this.shownRuns[0] ?? null;
  }

  get isBusy() {
    return this.#sent.size > 0 || this.liveRun !== null;
  }

  /** Runs of this conversation that have not ended, as far as is known. */
  get liveRuns() {
    return [...this.runs.values()].filter((run) => !hasEnded(run));
  }

  /**
   * Show a user message and its empty answers at once. Returns the frame to send, now and again
   * after every reconnect, until it is accepted or rejected.
   * @param {{clientId: string, text: string, model: string | null, beside?: string[],
   *   parent?: string | null, at?: string, setup?: import("./chat-setup.js").NewChat,
   *   sources?: import("./sources.js").Sources | null}} sent
   * @returns {SendFrame}
   */
  addSent({ clientId, text, model, beside = [], parent = this.leaf, at, setup = {}, sources = null }) {
    if (parent !== null) this.choose(parent);
    const question = `sent:${clientId}`;
    const chosen = this.nextChoice();
    this.#place({
      id: question, parent, role: "user", text, chosen, parts: [{ type: "text", text }], sources,
    }, at);
    [model, ...beside].forEach((name, index) => {
      this.#place({ id: answerKey(clientId, index), parent: question, chosen, model: name ?? "" }, at);
    });
    /** @type {SendFrame} */
    const frame = {
      type: "message.send",
      client_id: clientId,
      conversation: this.conversation?.id ?? null,
      parent,
      text,
      model,
      ...setup,
      ...(beside.length ? { beside } : {}),
      ...(sources ? { sources: idsOf(sources) } : {}),
    };
    this.#sent.set(clientId, frame);
    return frame;
  }

  /**
   * Show an empty answer beside one that is there, or one that goes on behind its text.
   * @param {{clientId: string, answer: string, model?: string | null, wish?: string | null,
   *   goesOn?: boolean, without?: number[], confirms?: boolean}} retake `without`: passages that it is
   *   not to be shown
   * @returns {RetakeFrame}
   */
  addRetake({ clientId, answer, model = null, wish = null, goesOn = false, without = [], confirms = false }) {
    const before = /** @type {Message} */ (this.messages.get(answer));
    if (before.parent !== null) this.choose(before.parent);
    this.#place({
      id: answerKey(clientId), parent: before.parent, chosen: this.nextChoice(),
      model: model ?? before.model, parts: goesOn ? before.parts : [],
      found: goesOn ? before.found : null,
    });
    const ids = { client_id: clientId, answer };
    /** @type {RetakeFrame} */
    const frame = goesOn
      ? { type: "answer.continue", ...ids }
      : {
          type: "answer.regenerate", ...ids, model, wish,
          ...(without.length ? { without } : {}), ...(confirms ? { confirms } : {}),
        };
    this.#sent.set(clientId, frame);
    return frame;
  }

  /**
   * @param {Partial<Message> & {id: string, chosen: number}} message
   * @param {string} [at]
   */
  #place(message, at = new Date().toISOString()) {
    this.put({
      parent: null, role: "assistant", text: "", parts: [], model: "", run: null, created_at: at,
      ...message, status: "sending", key: message.id,
    });
  }

  /** Frames to send again after a reconnect; the same client id makes the same message. */
  get unaccepted() {
    return [...this.#sent.values()];
  }

  /**
   * The server has saved what was sent. Returns false for a client id that is not waited for.
   * @param {Accepted} accepted
   */
  accept({ client_id, conversation, message, answer, answers = [answer] }) {
    if (!this.#sent.delete(client_id)) return false;
    this.conversation = conversation;
    if (message) this.#replace(`sent:${client_id}`, message);
    answers.forEach((each, index) => this.#replace(answerKey(client_id, index), each));
    return true;
  }

  /**
   * The server did not take it: nothing of it stays. Returns the text for the composer.
   * @param {string} clientId
   * @returns {string | null}
   */
  reject(clientId) {
    const frame = this.#sent.get(clientId);
    if (!frame) return null;
    this.#sent.delete(clientId);
    const isPart = new RegExp(`^(sent|answer):${clientId}(:|$)`);
    for (const id of [...this.messages.keys()]) if (isPart.test(id)) this.#forget(id);
    return frame.type === "message.send" ? frame.text : null;
  }

  /**
   * Apply a numbered event. "unknown" means a run that this store does not hold.
   * @param {string} run
   * @param {number} seq
   * @param {import("./run-state.js").RunEvent} event
   * @returns {import("./run-state.js").Outcome | "unknown"}
   */
  apply(run, seq, event) {
    const before = this.runs.get(run);
    if (!before) return "unknown";
    const { state, outcome } = applyEvent(before, seq, event);
    this.runs.set(run, state);
    if (hasEnded(state)) this.#settle(state);
    return outcome;
  }

  /**
   * The server lost events that were seen here; all of them come again from the first. Returns the
   * id of the answer, null for a run that this store does not hold.
   * @param {string} run
   */
  restart(run) {
    const state = this.runs.get(run);
    if (!state) return null;
    this.runs.set(run, newRun(run, state.message));
    const message = this.messages.get(state.message);
    if (message) this.put({ ...message, parts: [], text: "" });
    return state.message;
  }

  /**
   * The server has no such run, so no event of it will say how it ended. Returns the id of the
   * answer, null when nothing was waited for.
   * @param {string} run
   * @param {import("./run-state.js").RunError} error
   */
  fail(run, error) {
    const before = this.runs.get(run);
    if (!before || hasEnded(before)) return null;
    /** @type {RunState} */
    const state = { ...before, status: "failed", parts: this.#partsOf(before), error };
    this.runs.set(run, state);
    this.#settle(state);
    return state.message;
  }

  /**
   * The reader pressed stop: what is on the screen now is where the text ends.
   * Returns how many code points that is.
   * @param {string} run
   * @param {number} [chars] on the screen; all that has arrived if it is not known
   */
  stop(run, chars) {
    const state = this.runs.get(run);
    const shown = Math.min(chars ?? Infinity, state ? countText(this.#partsOf(state)) : 0);
    this.stopping.set(run, shown);
    return shown;
  }

  /** @param {Message} message */
  #asShown(message) {
    const state = message.run ? this.runs.get(message.run) : undefined;
    if (!state || hasEnded(state)) return message;
    const parts = this.#partsOf(state);
    const limit = this.stopping.get(state.run);
    return {
      ...message,
      parts: limit === undefined ? parts : clampText(parts, limit),
      model: state.model || message.model,
      resumed: state.resumed,
      left_out: state.leftOut,
      found: state.found ?? message.found,
      from_cache: state.fromCache ?? message.from_cache,
    };
  }

  /**
   * After a reload the page holds more than the events that were heard again so far: never show less.
   * @param {RunState} state
   */
  #partsOf(state) {
    const saved = this.messages.get(state.message)?.parts ?? [];
    return countText(saved) > countText(state.parts) ? saved : state.parts;
  }

  /**
   * Fold a run that has ended into its message.
   * @param {RunState} state
   */
  #settle(state) {
    const message = this.messages.get(state.message);
    if (!message) return;
    const parts = state.parts.length ? state.parts : this.#partsOf(state);
    const { status, finishReason: finish_reason, error, usage, timings, resumed, leftOut: left_out } = state;
    this.put({
      ...message, parts, status, finish_reason, error, usage, timings, resumed, left_out,
      found: state.found ?? message.found,
      from_cache: state.fromCache ?? message.from_cache,
      model: state.model || message.model,
    });
    this.phases.delete(state.run);
    this.stopping.delete(state.run);
  }

  /**
   * Put the saved message in the place of the one that was shown before it had an id.
   * @param {string} placeholder
   * @param {Message} message
   */
  #replace(placeholder, message) {
    this.drop(placeholder);
    this.mergeOne(message);
    const saved = /** @type {Message} */ (this.messages.get(message.id));
    this.put({ ...saved, key: placeholder });
  }

  /** @param {string} id */
  #forget(id) {
    this.drop(id);
    this.#forgetRunOf(id);
  }

  /** @param {string} message */
  #forgetRunOf(message) {
    for (const state of this.runs.values()) {
      if (state.message !== message || hasEnded(state)) continue;
      this.runs.delete(state.run);
      this.phases.delete(state.run);
      this.stopping.delete(state.run);
    }
  }
}

/**
 * The name of an answer on the screen until it has an id.
 * @param {string} clientId
 * @param {number} [index] among those side by side
 */
function answerKey(clientId, index = 0) {
  return index ? `answer:${clientId}:${index}` : `answer:${clientId}`;
}
