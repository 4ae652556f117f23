// @ts-check
/** What a model thought, folded: with a clock while it thinks, and the time that it took afterwards. */

import { AnswerText } from "./answer-text.js";
import { aside } from "./aside.js";
import { element, setText } from "./dom.js";
import { thoughtLine } from "./words.js";

const TICK_MS = 1000;

/** @returns {import("./message.js").PartView} */
export function reasoningPart() {
  const { root, summary, body } = aside("brain", "aside aside--reasoning");
  const prose = new AnswerText(body.appendChild(element("div", { class: "prose" })));
  const clock = new Clock(() => setText(summary, thoughtLine({ isLive: true, ms: clock.ms })));
  let text = "";
  let isLive = false;
  const draw = () => root.hasAttribute("open") && prose.update(text, !isLive); // folded, it costs nothing
  root.addEventListener("toggle", draw);
  return {
    type: "reasoning",
    root,
    update(part, context) {
      text = part.text;
      isLive = context.isLive;
      if (isLive && context.isWitnessed) clock.start();
      if (!isLive) clock.stop();
      setText(summary, thoughtLine({ isLive, ms: isLive ? clock.ms : (context.thinkingMs ?? clock.ms) }));
      draw();
    },
    close: () => clock.stop(),
  };
}

/** Counts from its first start; `tick` is called each second until it stops. */
class Clock {
  #startedAt = 0;
  #endedAt = 0;
  #timer = 0;

  /** @param {() => void} tick */
  constructor(tick) {
    this.tick = tick;
  }

  /** Null if it never ran: nobody here saw the beginning. */
  get ms() {
    if (!this.#startedAt) return null;
    return (this.#timer ? performance.now() : this.#endedAt) - this.#startedAt;
  }

  start() {
    this.#startedAt ||= performance.now();
    this.#timer ||= window.setInterval(this.tick, TICK_MS);
  }

  stop() {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#endedAt = performance.now();
  }
}
