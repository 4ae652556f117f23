// @ts-check
/**
 * Speaking in place of typing: a bar above the message box shows that it listens, how loud it is and what
 * it has understood; Done puts that where the caret was, Cancel and Esc leave everything as it was. It is
 * written down by a model of this site (recorded-dictation.js), or else by the browser.
 */

import { insertText } from "./caret.js";
import { Dictation, isOnDevice, recognitionOf } from "./dictation.js";
import { element, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { preference, remember } from "./preferences.js";

const QUIET_DB = -60; // below, the level shows nothing
const PROBLEMS = {
  "not-allowed": gettext("This page may not use the microphone. Allow it in the browser, beside the address."),
  "audio-capture": gettext("No microphone was found."),
  "no-speech": gettext("Nothing was heard."),
  network: gettext("The browser's speech recognition cannot be reached."),
  "service-not-allowed": gettext("The browser's speech recognition cannot be reached."),
  "language-not-supported": gettext("The browser cannot write down this language."),
};

/** @type {(() => void) | null} ends the one that listens */
let endCurrent = null;

/** @typedef {HTMLElement & Pick<import("./composer.js").ChatComposer, "input" | "form" | "transcribe">} Composer */

/**
 * @param {Composer} composer
 * @param {boolean} isHere whether this site writes it down
 */
export async function dictate(composer, isHere) {
  if (endCurrent) return endCurrent();
  const Recognition = recognitionOf();
  const language = document.documentElement.lang || navigator.language;
  const bar = new Bar(composer);
  endCurrent = () => bar.press("done");
  try {
    if (isHere) return await (await import("./recorded-dictation.js")).recordInto(composer, bar, new Level(bar.level));
    const isLocal = await isOnDevice(Recognition, language);
    if (isLocal || (await mayBeSent(bar))) await listen(bar, new Dictation(Recognition, language, isLocal), composer.input);
  } finally {
    endCurrent = null;
    bar.close();
  }
}

/** @param {Bar} bar */
async function mayBeSent(bar) {
  if (preference("dictation") === "yes") return true;
  const text = gettext("Your browser may send what you say to its maker to have it written down. This server gets the text alone.");
  const isAgreed = (await bar.ask(text, gettext("Dictate"))) === "done";
  if (isAgreed) remember("dictation", "yes");
  return isAgreed;
}

/**
 * @param {Bar} bar
 * @param {Dictation} dictation
 * @param {HTMLTextAreaElement} input
 */
async function listen(bar, dictation, input) {
  const { selectionStart, selectionEnd } = input;
  const level = new Level(bar.level);
  /** @type {Promise<{text: string, problem: string}>} */
  const ended = new Promise((resolve) => dictation.on("ended", resolve));
  dictation.on("heard", ({ text, interim }) => bar.hear(text, interim));
  bar.listen((choice) => (choice === "done" ? dictation.finish() : dictation.cancel()));
  level.begin();
  try {
    dictation.begin();
    const { text, problem } = await ended;
    if (text) putIn(input, text, selectionStart, selectionEnd);
    if (problem) await bar.tell(PROBLEMS[/** @type {keyof typeof PROBLEMS} */ (problem)] ?? gettext("Dictation ended by itself."));
  } finally {
    level.end();
  }
}

/**
 * Where the caret was, which may have moved since.
 * @param {HTMLTextAreaElement} input
 * @param {string} text
 * @param {number} start
 * @param {number} end
 */
export function putIn(input, text, start, end) {
  input.setSelectionRange(start, end);
  insertText(input, spaced(input, text));
}

/**
 * With a space towards what stands there.
 * @param {HTMLTextAreaElement} input
 * @param {string} text
 */
function spaced({ value, selectionStart, selectionEnd }, text) {
  const before = /\S$/.test(value.slice(0, selectionStart)) ? " " : "";
  const behind = /^[\p{L}\p{N}]/u.test(value.slice(selectionEnd)) ? " " : "";
  return before + text + behind;
}

export class Bar {
  level = element("span", { class: "dictation__level", "aria-hidden": "true" });
  time = element("span", { class: "dictation__time", "aria-hidden": "true" });
  #words = element("p", { class: "dictation__words", dir: "auto", tabindex: "0" });
  #status = element("p", { class: "dictation__status", role: "status" });
  #cancel = element("button", { type: "button", class: "button" }, [gettext("Cancel")]);
  #done = element("button", { type: "button", class: "button button--primary" });
  /** @type {(choice: "done" | "cancel") => void} */
  #chosen = () => {};

  /** @param {Composer} composer */
  constructor(composer) {
    this.composer = composer;
    this.element = element("div", { class: "dictation", role: "group", "aria-label": gettext("Dictation") }, [
      icon("mic"), this.level, this.time, this.#status, this.#words, this.#cancel, this.#done,
    ]);
    this.#cancel.addEventListener("click", () => this.press("cancel"));
    this.#done.addEventListener("click", () => this.press("done"));
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // it would stop an answer
      this.press("cancel");
    });
    this.element.hidden = true;
    composer.form.before(this.element);
  }

  /** @param {"done" | "cancel"} choice */
  press(choice) {
    this.#chosen(choice);
  }

  /**
   * @param {string} text
   * @param {string} action
   * @returns {Promise<"done" | "cancel">}
   */
  ask(text, action) {
    this.#show("asking", text, action);
    return new Promise((resolve) => (this.#chosen = resolve));
  }

  /** @param {(choice: "done" | "cancel") => void} chosen */
  listen(chosen) {
    this.#show("listening", gettext("Listening"), gettext("Done"));
    this.#chosen = chosen;
  }

  /**
   * What was said is on its way; there is nothing to do but to give it up.
   * @param {() => void} cancelled
   */
  wait(cancelled) {
    this.#show("writing", gettext("Writing it down"), "");
    this.#done.hidden = true;
    this.#cancel.focus({ preventScroll: true });
    this.#chosen = (choice) => choice === "cancel" && cancelled();
  }

  /** @param {string} words while it listens */
  say(words) {
    setText(this.#status, words);
  }

  /**
   * @param {string} text
   * @param {string} interim
   */
  hear(text, interim) {
    const rest = element("span", { class: "dictation__interim" }, [interim]);
    this.#words.replaceChildren(text, text && interim ? " " : "", rest);
    this.#words.scrollTop = this.#words.scrollHeight;
  }

  /** @param {string} problem until it is read */
  async tell(problem) {
    this.#words.replaceChildren();
    this.#cancel.hidden = true;
    await this.ask(problem, gettext("Close"));
  }

  close() {
    const hadFocus = this.element.contains(document.activeElement);
    this.element.remove();
    if (hadFocus) this.composer.input.focus({ preventScroll: true });
  }

  /**
   * @param {string} state
   * @param {string} status
   * @param {string} action
   */
  #show(state, status, action) {
    this.element.dataset.state = state;
    this.element.hidden = this.#done.hidden = false;
    setText(this.#status, status);
    setText(this.#done, action);
    this.#done.focus({ preventScroll: true });
  }
}

/** How loud it is, so that one sees whether the right microphone listens. Without it dictation works too. */
export class Level {
  /** @type {MediaStream | null} */
  #stream = null;
  /** @type {AudioContext | null} */
  #context = null;
  #frame = 0;
  #hasEnded = false;

  /** @param {HTMLElement} shown */
  constructor(shown) {
    this.shown = shown;
  }

  /** @param {MediaStream} [lent] that is heard anyway, and ended by who lends it */
  async begin(lent) {
    try {
      this.#stream = lent ?? (await navigator.mediaDevices.getUserMedia({ audio: true }));
      if (this.#hasEnded) return this.end();
      this.#context = new AudioContext();
      const analyser = this.#context.createAnalyser();
      this.#context.createMediaStreamSource(this.#stream).connect(analyser);
      this.#draw(analyser, new Float32Array(analyser.fftSize));
    } catch {
      return; // some devices lend the microphone once only
    }
  }

  /**
   * @param {AnalyserNode} analyser
   * @param {Float32Array<ArrayBuffer>} samples
   */
  #draw(analyser, samples) {
    analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    const level = Math.min(1, Math.max(0, 1 - (10 * Math.log10(power + 1e-12)) / QUIET_DB));
    this.shown.style.setProperty("--level", level.toFixed(2));
    this.#frame = requestAnimationFrame(() => this.#draw(analyser, samples));
  }

  end() {
    this.#hasEnded = true;
    cancelAnimationFrame(this.#frame);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#context?.close();
    this.#context = null;
  }
}
