// @ts-check
/**
 * A WebSocket's part played by plain HTTP, for networks that let no WebSocket through: frames come as
 * server-sent events and go as POSTs, one after the other. What it offers of a WebSocket is what ChatSocket
 * uses.
 */

import { newId } from "./ids.js";

const CLOSED_BADLY = 1006;
const CLOSED_AS_TOO_LARGE = 1009;
const MAX_FRAMES = 100;

/** @typedef {{EventSource?: typeof EventSource, fetch?: typeof fetch}} Surroundings what tests replace */

export class HttpLine {
  /** @type {(() => void) | null} */
  onopen = null;
  /** @type {((event: {data: string}) => void) | null} */
  onmessage = null;
  /** @type {((event: {code: number}) => void) | null} */
  onclose = null;

  /** @type {string[]} */
  #waiting = [];
  #isSending = false;
  #isClosed = false;

  /**
   * @param {string} url of all lines
   * @param {Surroundings} [surroundings]
   */
  constructor(url, surroundings = {}) {
    this.url = `${url}${newId()}`;
    this.fetch = surroundings.fetch ?? globalThis.fetch.bind(globalThis);
    this.source = new (surroundings.EventSource ?? globalThis.EventSource)(this.url);
    this.source.onopen = () => this.onopen?.();
    this.source.onmessage = ({ data }) => this.onmessage?.({ data });
    this.source.addEventListener("close", ({ data }) => this.#end(JSON.parse(data).code));
    this.source.onerror = () => this.#end(CLOSED_BADLY); // it would try again, with an id that is used
  }

  /** @param {string} text */
  send(text) {
    if (this.#isClosed) return;
    this.#waiting.push(text);
    this.#sendWaiting();
  }

  close() {
    this.#end(1000);
  }

  /** Frames keep their order: what comes while a request is on its way goes with the next one. */
  async #sendWaiting() {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#waiting.length && !this.#isClosed) {
      const frames = this.#waiting.splice(0, MAX_FRAMES);
      const status = await this.#post(frames);
      if (status !== 202) this.#end(status === 413 ? CLOSED_AS_TOO_LARGE : CLOSED_BADLY);
    }
    this.#isSending = false;
  }

  /**
   * @param {string[]} frames
   * @returns {Promise<number>} the status, 0 where nobody answered
   */
  async #post(frames) {
    try {
      return (await this.fetch(this.url, { method: "POST", body: JSON.stringify(frames) })).status;
    } catch {
      return 0;
    }
  }

  /** @param {number} code */
  #end(code) {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.source.close();
    this.onclose?.({ code });
  }
}
