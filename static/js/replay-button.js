// @ts-check
/** The button that writes an answer again from its seed, and the line that says what came of it. */

import { element, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { duration } from "./trace-words.js";
import { count, thousands } from "./words.js";

/**
 * @param {(signal: AbortSignal) => AsyncIterable<any>} replay its events, see POST …/replay
 * @returns {{button: HTMLElement, outcome: HTMLElement}}
 */
export function replayButton(replay) {
  const words = element("span", {}, [gettext("Replay")]);
  const title = gettext("Writes the answer again from its seed and compares. Nothing of it is kept.");
  const button = element("button", { type: "button", class: "button", title }, [icon("rotate-cw"), words]);
  const outcome = element("p", { class: "replay", role: "status", hidden: "" });
  /** @type {AbortController | null} */
  let running = null;
  button.addEventListener("click", async () => {
    if (running) return running.abort();
    running = new AbortController();
    setText(words, gettext("Stop"));
    outcome.hidden = false;
    show(outcome, "running", gettext("Waiting for the engine"));
    try {
      for await (const event of replay(running.signal)) show(outcome, ...outcomeOf(event));
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      show(outcome, "broken", name === "AbortError" ? gettext("Replay stopped. It says nothing about the answer.") : message);
    } finally {
      running = null;
      setText(words, gettext("Replay"));
    }
  });
  return { button, outcome };
}

/**
 * @param {HTMLElement} outcome
 * @param {string} kind
 * @param {string} words
 */
function show(outcome, kind, words) {
  outcome.dataset.outcome = kind;
  setText(outcome, words);
}

/**
 * @param {any} event
 * @returns {[string, string]} kind and words
 */
export function outcomeOf(event) {
  switch (event.kind) {
    case "progress":
      return ["running", gettext("Replaying · %(same)s of %(all)s the same so far", { same: thousands(event.tokens), all: count(event.of, "token") })];
    case "same":
      return ["same", gettext("Same. All %(tokens)s came again, in %(time)s.", { tokens: count(event.tokens, "token"), time: duration(event.took_ms) })];
    case "differs":
      return ["differs", differenceWords(event)];
    default:
      return ["broken", event.message ?? gettext("The replay could not be finished.")];
  }
}

/** @param {{token: number, before: string, was: string | null, now: string | null}} difference */
function differenceWords({ token, before, was, now }) {
  const place = before.trim() ? gettext("Behind “…%(text)s”", { text: before }) : gettext("There");
  const then = was === null ? gettext("the answer ended") : gettext("it wrote “%(text)s”", { text: was });
  const today = now === null ? gettext("it ended now") : gettext("“%(text)s” came now", { text: now });
  return gettext("Differs at token %(n)s. %(place)s, %(then)s, and %(today)s.", { n: thousands(token + 1), place, then, today });
}
