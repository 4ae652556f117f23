// @ts-check
/**
 * The one socket of a page (docs/socket.md): connects, reconnects with jittered backoff, notices a
 * dead line, follows each live run again from its last seq, and acknowledges what has been seen.
 * It knows nothing of conversations: it emits each frame under its `type`, and "state" when the
 * connection changed.
 *
 * @typedef {{type: string, [field: string]: any}} Frame
 * @typedef {import("./http-line.js").HttpLine} Line
 * @typedef {"connecting" | "open" | "waiting" | "signed-out"} SocketState
 * @typedef {object} Surroundings what tests replace
 * @property {typeof WebSocket} [WebSocket]
 * @property {() => Promise<() => Line>} [loadLine] what makes lines where WebSockets do not get through
 * @property {typeof setTimeout} [setTimeout]
 * @property {typeof clearTimeout} [clearTimeout]
 * @property {() => number} [now] milliseconds
 * @property {() => number} [random]
 */

import { Emitter } from "./emitter.js";
import { newTraceparent } from "./ids.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
const ACK_EVERY_MS = 250;
const OPEN_WITHIN_MS = 10_000;
const SILENT_ATTEMPTS = 2;
const PING_AFTER_MS = 20_000;
const PONG_WITHIN_MS = 8_000;
const CLOSED_BY_SIGN_OUT = 4401;
const CLOSED_AS_TOO_LARGE = 1009;
const MAX_FRAME_BYTES = 2 ** 20;

export class ChatSocket extends Emitter {
  /** @type {SocketState} */
  state = "connecting";
  /** When the next attempt starts, in ms of `now()`; 0 until the line was lost once. */
  retryAt = 0;

  /** @type {Map<string, () => number>} run → its last seq */
  #followed = new Map();
  /** @type {Set<string>} runs that this line was told not to bring; some events are on their way */
  #unfollowed = new Set();
  /** @type {Map<string, number>} run → seq to acknowledge */
  #unacknowledged = new Map();
  /** @type {WebSocket | Line | null} */
  #socket = null;
  /** @type {(() => Line) | null} */
  #makeLine = null;
  #attempts = 0;
  /** Attempts since the server last said hello. */
  #numSilent = 0;
  #isLine = false;
  /** Whether it was by HTTP that the server last said hello. */
  #isByHttp = false;
  /** @type {Record<"retry" | "ack" | "ping", any>} */
  #timers = { retry: null, ack: null, ping: null };

  /**
   * @param {string} url
   * @param {Surroundings} [surroundings]
   */
  constructor(url, surroundings = {}) {
    super();
    this.url = url;
    this.WebSocket = surroundings.WebSocket ?? globalThis.WebSocket;
    this.loadLine = surroundings.loadLine ?? loadLine;
    this.setTimeout = surroundings.setTimeout ?? globalThis.setTimeout.bind(globalThis);
    this.clearTimeout = surroundings.clearTimeout ?? globalThis.clearTimeout.bind(globalThis);
    this.now = surroundings.now ?? Date.now;
    this.random = surroundings.random ?? Math.random;
  }

  /** Open now, also while waiting for the next attempt, or once who was signed out `isBack`. */
  connect(isBack = false) {
    if (this.#socket || (this.state === "signed-out" && !isBack)) return;
    this.#clear("retry");
    const isByHttp = this.#makeLine !== null && this.#takesHttp();
    const socket = isByHttp && this.#makeLine ? this.#makeLine() : new this.WebSocket(this.url);
    this.#isLine = isByHttp;
    this.#numSilent += 1;
    this.#socket = socket;
    this.#enter("connecting");
    // Some networks swallow a handshake without a word.
    this.#timers.ping = this.setTimeout(() => this.#hangUp(), OPEN_WITHIN_MS);
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => this.#heard(event.data);
    socket.onclose = (event) => this.#closed(socket, event.code);
  }

  /** By HTTP goes every other attempt once WebSockets came to nothing, and the first where it has worked. */
  #takesHttp() {
    const isDue = this.#numSilent >= SILENT_ATTEMPTS && this.#numSilent % 2 === SILENT_ATTEMPTS % 2;
    return isDue || (this.#isByHttp && this.#numSilent === 0);
  }

  /**
   * Send a frame if the line is open. Returns false otherwise: the caller keeps what must not be lost.
   * @param {Frame} frame
   */
  send(frame) {
    if (this.state !== "open") return false;
    const isAsking = "client_id" in frame; // one id leads from here to the server's log
    const sent = isAsking ? { ...frame, traceparent: newTraceparent() } : frame;
    const text = JSON.stringify(sent);
    if (new Blob([text]).size > MAX_FRAME_BYTES) this.emit("too-large", frame); // the server would hang up
    else this.#socket?.send(text);
    return true;
  }

  /**
   * Ask for all events of a run behind `lastSeq()`, now and after every reconnect.
   * @param {string} run
   * @param {() => number} lastSeq
   */
  follow(run, lastSeq) {
    this.keep(run, lastSeq);
    this.send({ type: "run.follow", run, after: lastSeq() });
  }

  /** @param {string} run */
  follows(run) {
    return this.#followed.has(run);
  }

  /** Runs that are followed now and after every reconnect. */
  get followed() {
    return [...this.#followed.keys()];
  }

  /**
   * The reader left: no more events of it. It is said once, however many are still on their way.
   * @param {string} run
   */
  unfollow(run) {
    this.forget(run);
    if (this.#unfollowed.has(run)) return;
    if (this.send({ type: "run.unfollow", run })) this.#unfollowed.add(run);
  }

  /**
   * The server lets a sender follow by itself; remember the run for reconnects.
   * @param {string} run
   * @param {() => number} lastSeq
   */
  keep(run, lastSeq) {
    this.#unfollowed.delete(run);
    this.#followed.set(run, lastSeq);
  }

  /**
   * The run has ended: there is nothing more to follow.
   * @param {string} run
   */
  forget(run) {
    this.#followed.delete(run);
  }

  /**
   * Acknowledge events up to `seq`, about four times a second.
   * @param {string} run
   * @param {number} seq
   */
  acknowledge(run, seq) {
    this.#unacknowledged.set(run, seq);
    this.#timers.ack ??= this.setTimeout(() => this.#sendAcknowledgements(), ACK_EVERY_MS);
  }

  #sendAcknowledgements() {
    this.#timers.ack = null;
    for (const [run, seq] of this.#unacknowledged) this.send({ type: "run.ack", run, seq });
    this.#unacknowledged.clear();
  }

  #opened() {
    this.#unfollowed.clear();
    this.#expectWord();
    this.#enter("open");
    for (const [run, lastSeq] of this.#followed) {
      this.send({ type: "run.follow", run, after: lastSeq() });
    }
  }

  /** @param {string} data */
  #heard(data) {
    this.#expectWord();
    const frame = /** @type {Frame} */ (JSON.parse(data));
    // Not when it opens: a server that accepts and hangs up at once is left alone for longer and longer.
    if (frame.type === "hello") {
      this.#attempts = this.#numSilent = 0;
      this.#isByHttp = this.#isLine;
    }
    this.emit(frame.type, frame);
  }

  /** A laptop that slept holds a dead line that looks open: ask, and hang up without an answer. */
  #expectWord() {
    this.#clear("ping");
    this.#timers.ping = this.setTimeout(() => this.verify(), PING_AFTER_MS);
  }

  /** Ask whether somebody is still there. */
  verify() {
    if (!this.send({ type: "ping" })) return;
    this.#clear("ping");
    this.#timers.ping = this.setTimeout(() => this.#hangUp(), PONG_WITHIN_MS);
  }

  #hangUp() {
    const socket = this.#socket;
    if (!socket) return;
    socket.close();
    this.#closed(socket, 1006); // the close event of a dead line may take minutes
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   */
  #closed(socket, code) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#clear("ping");
    if (code === CLOSED_BY_SIGN_OUT) {
      this.#enter("signed-out");
      return;
    }
    if (this.#numSilent) this.#prepareLine();
    const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#attempts);
    const wait = ceiling / 2 + (this.random() * ceiling) / 2;
    this.#attempts += 1;
    this.retryAt = this.now() + wait;
    this.#timers.retry = this.setTimeout(() => this.connect(), wait);
    this.#enter("waiting");
    if (code === CLOSED_AS_TOO_LARGE) this.emit("too-large");
  }

  async #prepareLine() {
    this.#makeLine ??= await this.loadLine().catch(() => null); // tried again after the next attempt
  }

  /** @param {SocketState} state */
  #enter(state) {
    this.state = state;
    this.emit("state", state);
  }

  /** @param {"retry" | "ack" | "ping"} name */
  #clear(name) {
    this.clearTimeout(this.#timers[name]);
    this.#timers[name] = null;
  }
}

async function loadLine() {
  const { HttpLine } = await import("./http-line.js");
  return () => new HttpLine("/line/");
}
