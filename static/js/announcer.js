// @ts-check
/**
 * The one voice for screen readers: says that an answer begins, then its sentences as they are
 * finished, never tokens, then how it ended where it did not end by itself. Code is named, not read.
 */

import { element } from "./dom.js";
import { gettext } from "./i18n.js";

const MAX_KEPT = 4;
const SENTENCE_END = /[.!?…][)"'”’]*\s|[。！？]|\n/gu;

/**
 * The whole sentences of `text` behind `from`, and where they end.
 * @param {string} text
 * @param {number} from
 * @param {boolean} isComplete also take what has no end yet
 */
export function sentencesBehind(text, from, isComplete) {
  const rest = text.slice(from);
  let length = isComplete ? rest.length : 0;
  if (!isComplete) for (const end of rest.matchAll(SENTENCE_END)) length = end.index + end[0].length;
  const said = rest.slice(0, length);
  const fences = (text.slice(0, from + length).match(/^\s*(```|~~~)/gm) ?? []).length;
  // Not in the middle of code: what is open now is said as "code" when it is closed.
  if (fences % 2 && !isComplete) return { words: "", to: from };
  return { words: readable(said), to: from + length };
}

/** @param {string} markdown */
function readable(markdown) {
  return markdown
    .replace(/^\s*(```|~~~)[\s\S]*?(^\s*\1|$(?![\s\S]))/gm, gettext(" Code block. "))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s*(#{1,6}|>|[-*+]|\|)\s*/gm, "")
    .replace(/[*_`|]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
}

export class Announcer {
  /** @type {Map<string, number>} message → how much of its text was said; Infinity at its end */
  #said = new Map();
  /** @type {Set<string>} calls of tools that were asked about */
  #asked = new Set();
  #isOffline = false;

  /** @param {HTMLElement} region a polite live region */
  constructor(region) {
    this.region = region;
  }

  /** @param {string} words */
  say(words) {
    if (!words) return;
    this.region.append(element("p", {}, [words]));
    while (this.region.children.length > MAX_KEPT) this.region.firstElementChild?.remove();
  }

  /**
   * The line went or came back; not each attempt in between. That one is signed out the status bar says.
   * @param {import("./socket.js").SocketState} state
   */
  sayConnection(state) {
    const isLost = state === "waiting" || state === "signed-out";
    if (state === "waiting" && !this.#isOffline) this.say(gettext("No connection."));
    if (state === "open" && this.#isOffline) this.say(gettext("Connected again."));
    this.#isOffline = isLost || (this.#isOffline && state !== "open");
  }

  /**
   * An answer that is being written, as far as it goes. One that was whole when this tab first had it is
   * drawn anew for other reasons, and is not said.
   * @param {string} message
   * @param {string} text
   * @param {boolean} isComplete
   * @param {boolean} isWitnessed this tab had it from its start
   * @param {string | null} [end] how it ended, where that has to be said
   */
  follow(message, text, isComplete, isWitnessed, end = null) {
    const before = this.#said.get(message);
    if (before === Infinity || (before === undefined && isComplete && !isWitnessed)) return;
    if (before === undefined) this.say(gettext("Answering."));
    const { words, to } = sentencesBehind(text, before ?? 0, isComplete);
    this.#said.set(message, isComplete ? Infinity : to);
    this.say(words);
    if (isComplete && end) this.say(end);
  }

  /**
   * A tool waits for the reader's word.
   * @param {string} call
   * @param {string} words
   */
  ask(call, words) {
    if (!this.#asked.has(call)) this.say(words);
    this.#asked.add(call);
  }

  /** What is on the screen already is not said. @param {string} message @param {string} text */
  skip(message, text) {
    this.#said.set(message, text.length);
  }
}
