// @ts-check
/**
 * One conversation in this tab: its tree of messages, the path that is shown, what was sent and not
 * yet accepted, and the runs that write answers. Pure state: no socket, no DOM.
 *
 * @typedef {import("./parts.js").Part} Part
 * @typedef {import("./run-state.js").RunState} RunState
 * @typedef {{id: string, url: string, title: string, model: string, version: number,
 *   created_at: string, updated_at: string, running: string[]}} Conversation
 * @typedef {object} Message
 * @property {string} id
 * @property {string | null} parent
 * @property {"user" | "assistant"} role
 * @property {"sending" | "running" | "complete" | "stopped" | "refused" | "failed"} status
 * @property {string} text
 * @property {Part[]} parts
 * @property {string} model
 * @property {string | null} run
 * @property {string} created_at
 * @property {string} [finish_reason]
 * @property {import("./run-state.js").RunError | null} [error]
 * @property {import("./run-state.js").Usage | null} [usage]
 * @property {import("./run-state.js").Timings | null} [timings]
 * @property {boolean} [resumed]
 * @property {string} [key] names the message on the screen while its id is not known yet
 *
 * @typedef {{type: "message.send", client_id: string, conversation: string | null,
 *   parent: string | null, text: string, model: string | null}} SendFrame
 */

import { clampText, countText } from "./parts.js";
import { applyEvent, hasEnded, newRun } from "./run-state.js";

export class ConversationStore {
  /** @type {Conversation | null} null until the first message of a new chat is accepted */
  conversation;
  /** @type {Map<string, Message>} */
  messages = new Map();
  /** @type {Map<string, RunState>} */
  runs = new Map();
  /** @type {Map<string, any>} run → its latest phase */
  phases = new Map();
  /** @type {Map<string, number>} run → code points on the screen when stop was pressed */
  stopping = new Map();

  /** @type {Map<string, SendFrame>} client id → what was sent and not yet accepted */
  #sent = new Map();
  /** @type {string | null} the message at the end of the path */
  #leaf = null;

  /**
   * @param {Conversation | null} conversation
   * @param {Message[]} messages of all branches, oldest first
   */
  constructor(conversation, messages = []) {
    this.conversation = conversation;
    this.merge(messages);
  }

  /**
   * Take in all messages that the server has, oldest first; the newest ends the path. What is still
   * being sent stays in its place, and so does what was accepted while the reading was under way.
   * @param {Message[]} messages
   */
  merge(messages) {
    for (const message of messages) this.mergeOne(message);
    const newest = messages.at(-1);
    const isOld = this.#leaf !== null && !messages.some(({ id }) => id === this.#leaf);
    if (newest && !this.#sent.size && !isOld) this.#leaf = newest.id;
  }

  /**
   * A read that was under way when the run ended must not bring the unfinished answer back.
   * @param {Message} message
   */
  mergeOne(message) {
    const known = this.messages.get(message.id);
    if (message.status === "running" && known && known.status !== "running") return;
    this.messages.set(message.id, { ...message, key: known?.key });
    if (message.status !== "running") this.#forgetRunOf(message.id);
    else if (message.run && !this.runs.has(message.run)) {
      this.runs.set(message.run, newRun(message.run, message.id));
    }
  }

  /** The messages from the first to the leaf, as they are shown. @returns {Message[]} */
  path() {
    /** @type {Message[]} */
    const path = [];
    let message = this.shown(this.#leaf);
    while (message) {
      path.push(message);
      message = this.shown(message.parent);
    }
    return path.reverse();
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

  /** The run that writes the last answer of the path, if it still does. */
  get liveRun() {
    const run = this.shown(this.#leaf)?.run;
    const state = run ? this.runs.get(run) : undefined;
    return state && !hasEnded(state) ? state : null;
  }

  get isBusy() {
    return this.#sent.size > 0 || this.liveRun !== null;
  }

  /** Runs of this conversation that have not ended, as far as is known. */
  get liveRuns() {
    return [...this.runs.values()].filter((run) => !hasEnded(run));
  }

  /**
   * Show a user message and an empty answer at once. Returns the frame to send, now and again
   * after every reconnect, until it is accepted or rejected.
   * @param {{clientId: string, text: string, model: string | null, parent?: string | null,
   *   at?: string}} sent
   * @returns {SendFrame}
   */
  addSent({ clientId, text, model, parent = this.#leaf, at = new Date().toISOString() }) {
    const user = `sent:${clientId}`;
    const answer = `answer:${clientId}`;
    const common = { status: /** @type {const} */ ("sending"), run: null, created_at: at };
    this.messages.set(user, {
      ...common, id: user, key: user, parent, role: "user", text, model: "",
      parts: [{ type: "text", text }],
    });
    this.messages.set(answer, {
      ...common, id: answer, key: answer, parent: user, role: "assistant", text: "", parts: [],
      model: model ?? "",
    });
    this.#leaf = answer;
    /** @type {SendFrame} */
    const frame = {
      type: "message.send",
      client_id: clientId,
      conversation: this.conversation?.id ?? null,
      parent,
      text,
      model,
    };
    this.#sent.set(clientId, frame);
    return frame;
  }

  /** Frames to send again after a reconnect; the same client id makes the same message. */
  get unaccepted() {
    return [...this.#sent.values()];
  }

  /**
   * The server has saved what was sent. Returns false for a client id that is not waited for.
   * @param {{client_id: string, conversation: Conversation, message: Message, answer: Message}}
   *   accepted
   */
  accept({ client_id, conversation, message, answer }) {
    if (!this.#sent.delete(client_id)) return false;
    this.conversation = conversation;
    this.#replace(`sent:${client_id}`, message);
    this.#replace(`answer:${client_id}`, answer);
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
    this.messages.delete(`sent:${clientId}`);
    this.messages.delete(`answer:${clientId}`);
    this.#leaf = frame.parent;
    return frame.text;
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
    if (message) this.messages.set(message.id, { ...message, parts: [], text: "" });
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
    const { status, finishReason: finish_reason, error, usage, timings, resumed } = state;
    this.messages.set(message.id, {
      ...message, parts, status, finish_reason, error, usage, timings, resumed,
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
    this.messages.delete(placeholder);
    this.mergeOne(message);
    const saved = /** @type {Message} */ (this.messages.get(message.id));
    this.messages.set(message.id, { ...saved, key: placeholder });
    if (this.#leaf === placeholder) this.#leaf = message.id;
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
