// @ts-check
/** What the page shows of the engine without being asked: how full the context is, which chats are warm. */

import { find } from "./dom.js";
import { previewLeftOut } from "./left-out.js";
import { idsOf } from "./sources.js";
import { branch } from "./temporary.js";
import { TokenMeter } from "./token-meter.js";

const WARMTH_EVERY_MS = 60_000;
const WARMTH_AFTER_MS = 1_000; // a title is found from the warm prefix, right behind the answer

export class GlassMarks {
  #meter = /** @type {TokenMeter} */ (find(document, "token-meter"));
  #waiting = 0;

  /**
   * @param {object} page
   * @param {import("./session.js").ChatSession} page.session
   * @param {import("./api.js").Api} page.api
   * @param {import("./composer.js").ChatComposer} page.composer
   * @param {HTMLElement} page.list of the messages
   * @param {import("./sidebar.js").ChatSidebar} page.sidebar
   * @param {() => string | null} page.model name of the one that answers next
   * @param {import("./chat-setup.js").ChatSetup} page.setup
   */
  constructor(page) {
    this.page = page;
    this.#meter.count = (draft) => page.api.meter(draft);
    this.#meter.addEventListener("measured", (event) => previewLeftOut(page.list, /** @type {CustomEvent} */ (event).detail?.left_out ?? null));
    page.composer.input.addEventListener("input", () => this.#measure());
    page.composer.picked.on("changed", () => this.#measure());
    const measureAnew = () => {
      this.#meter.clear();
      this.#measure();
    };
    page.session.on("opened", measureAnew);
    page.setup.on("changed", measureAnew);
    for (const news of ["path", "models", "message"]) page.session.on(news, () => this.#measure());
    page.session.on("subscribed", () => this.#askWarmth());
    page.session.on("conversations", () => this.#askWarmth());
    setInterval(() => this.#askWarmth(), WARMTH_EVERY_MS);
  }

  /** While an answer is written nothing can be sent; the meter stays as it was. */
  #measure() {
    const { session, composer, model, setup } = this.page;
    const { store } = session;
    if (store.isBusy) return;
    const text = composer.input.value;
    const conversation = store.conversation?.id ?? null;
    const parent = store.leaf;
    if (parent === null && !text.trim()) return this.#meter.clear();
    const setupOfNew = conversation === null ? setup.fieldsOfNew : {};
    const messages = store.isTemporary ? { is_temporary: true, messages: branch(store, parent) } : {};
    const sources = composer.picked.size ? idsOf(composer.picked.ready) : null;
    this.#meter.measure({ text, model: model(), conversation, parent, sources, ...setupOfNew, ...messages });
  }

  /** News come in bursts; one question does for all of them. A page that nobody sees asks nothing. */
  #askWarmth() {
    if (document.hidden || this.#waiting) return;
    this.#waiting = window.setTimeout(async () => {
      this.#waiting = 0;
      const answer = await this.page.api.warmth().catch(() => null);
      if (answer) this.page.sidebar.setWarmth(answer.conversations);
    }, WARMTH_AFTER_MS);
  }
}
