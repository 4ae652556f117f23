// @ts-check
/**
 * <token-meter>: how full the model's context would be with what is being written, as a thin bar at the
 * composer's edge; its parts by name on hover, focus or click. Counted by the server, a moment after
 * the last key; of answers that come late the newest counts.
 * Event: "measured" {left_out}, or null where nothing is known.
 */

import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { fullness, levelOf, meterWords, shares } from "./meter-words.js";
import { placePopover } from "./popover.js";
import { percentReached, thousands } from "./words.js";

const AFTER_MS = 400;

/**
 * @typedef {{text: string, model: string | null, conversation: string | null, parent: string | null,
 *   sources?: import("./sources.js").SourceIds | null}
 *   & import("./chat-setup.js").NewChat} Draft
 */

export class TokenMeter extends HTMLElement {
  /** @type {((draft: Draft) => Promise<import("./meter-words.js").Meter>) | null} asks the server */
  count = null;

  /** @type {HTMLButtonElement} */
  button = find(this, "button");
  /** @type {HTMLElement} */
  card = find(this, "[popover]");
  /** @type {HTMLElement} */
  words = find(this, ".meter__words");

  #timer = 0;
  #asked = 0;
  #last = "";

  connectedCallback() {
    const composer = this.previousElementSibling ?? this; // it must not cover what is being written
    this.card.addEventListener("toggle", () => placePopover(this.card, composer));
    // Not as it enters: the composer grows under a pointer that rests, and the card would cover the text.
    this.button.addEventListener("pointermove", (event) => this.#hover(event, true));
    this.button.addEventListener("pointerleave", (event) => this.#hover(event, false));
  }

  /**
   * A finger that enters is about to click, which toggles.
   * @param {PointerEvent} event
   * @param {boolean} isOver
   */
  #hover(event, isOver) {
    if (event.pointerType === "mouse") this.card.togglePopover(isOver);
  }

  /** @param {Draft} draft what might be sent now */
  measure(draft) {
    clearTimeout(this.#timer);
    const key = JSON.stringify(draft);
    if (key === this.#last) return;
    this.#timer = window.setTimeout(() => this.#measure(draft, key), AFTER_MS);
  }

  /** Nothing can be sent just now, or nothing is there to be counted. */
  clear() {
    clearTimeout(this.#timer);
    this.#asked++;
    this.#last = "";
    this.#tell(null);
  }

  /** @param {import("./meter-words.js").Meter | null} meter */
  #tell(meter) {
    this.hidden = !meter; // unknown is not shown as empty
    this.dispatchEvent(new CustomEvent("measured", { detail: meter }));
  }

  /**
   * @param {Draft} draft
   * @param {string} key
   */
  async #measure(draft, key) {
    const asked = ++this.#asked;
    const meter = await this.count?.(draft).catch(() => null);
    if (asked !== this.#asked) return;
    this.#last = meter ? key : "";
    if (meter?.context_tokens) this.#show(meter);
    else this.#tell(null);
  }

  /** @param {import("./meter-words.js").Meter} meter */
  #show(meter) {
    const level = levelOf(meter);
    this.#tell(meter);
    this.dataset.level = level;
    const parts = shares(meter);
    const pieces = parts.map(({ tone, share }) => {
      const piece = element("span", { "data-part": tone });
      piece.style.setProperty("--size", String(share));
      return piece;
    });
    find(this, ".meter__bar").replaceChildren(...pieces);
    const percent = percentReached(fullness(meter));
    const room = meter.context_tokens - meter.reserve_tokens;
    const label = gettext("Context: %(used)s of %(room)s tokens, %(percent)s", { used: thousands(meter.prompt_tokens), room: thousands(room), percent });
    this.button.setAttribute("aria-label", label);
    const rows = parts.map(({ words, tone, tokens }) => {
      const mark = element("span", { class: "meter__mark", "data-part": tone, "aria-hidden": "true" });
      return element("div", {}, [element("dt", {}, [mark, words]), element("dd", {}, [thousands(tokens)])]);
    });
    const total = gettext("%(used)s of %(room)s tokens", { used: thousands(meter.prompt_tokens), room: thousands(room) });
    find(this.card, "p").replaceChildren(total);
    find(this.card, "dl").replaceChildren(...rows);
    const words = meterWords(meter);
    setText(this.words, words);
    this.words.hidden = !words;
  }
}

customElements.define("token-meter", TokenMeter);
