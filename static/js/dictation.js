// @ts-check
/**
 * What is said becomes text, by the speech recognition of the browser (Web Speech API). It has no DOM.
 * Some engines end by themselves after a silence or a minute: then they begin again, until somebody is
 * done. It emits "heard" {text, interim} and once "ended" {text, problem}; `text` is empty where it was
 * cancelled.
 */

import { Emitter } from "./emitter.js";

const MOST_EMPTY_ENDS = 3; // in a row, without a word: it does not work
const WITHOUT_SPACES = /^(zh|ja|th|lo|km|my)\b/;

/** @typedef {{isFinal: boolean, 0: {transcript: string}}} Result */

/** @returns {any} a class, or nothing where a browser cannot */
export function recognitionOf(page = /** @type {any} */ (globalThis)) {
  return page.SpeechRecognition ?? page.webkitSpeechRecognition;
}

/**
 * Whether the device itself understands a language, so that no sound leaves it.
 * @param {any} Recognition
 * @param {string} language
 */
export async function isOnDevice(Recognition, language) {
  try {
    return (await Recognition.available?.({ langs: [language], processLocally: true })) === "available";
  } catch {
    return false;
  }
}

export class Dictation extends Emitter {
  /** @type {string[]} what earlier sessions of the engine have heard, and this one */
  #before = [];
  /** @type {string[]} */
  #finals = [];
  #interim = "";
  /** @type {"" | "finishing" | "cancelled"} */
  #wish = "";
  #problem = "";
  #numEmptyEnds = 0;
  #hasEnded = false;

  /**
   * @param {any} Recognition
   * @param {string} language
   * @param {boolean} isLocal
   */
  constructor(Recognition, language, isLocal) {
    super();
    this.language = language;
    this.recognition = new Recognition();
    Object.assign(this.recognition, { lang: language, continuous: true, interimResults: true });
    if (isLocal) this.recognition.processLocally = true;
    this.recognition.onresult = (/** @type {any} */ event) => this.#heard(event.results);
    this.recognition.onerror = (/** @type {any} */ event) => (this.#problem = event.error);
    this.recognition.onend = () => this.#ended();
  }

  begin() {
    this.recognition.start();
  }

  /** What is still on its way is waited for. */
  finish() {
    this.#wish ||= "finishing";
    this.recognition.stop();
  }

  cancel() {
    this.#wish = "cancelled";
    this.recognition.abort();
  }

  get text() {
    return this.#joined([...this.#before, ...this.#finals]);
  }

  /** @param {Result[]} results all of this session, as a list-like */
  #heard(results) {
    const all = Array.from(results, (result) => ({ isFinal: result.isFinal, words: result[0].transcript }));
    this.#finals = all.filter(({ isFinal }) => isFinal).map(({ words }) => words);
    this.#interim = this.#joined(all.filter(({ isFinal }) => !isFinal).map(({ words }) => words));
    this.emit("heard", { text: this.text, interim: this.#interim });
  }

  #ended() {
    if (this.#hasEnded) return;
    const wasEmpty = !this.#finals.length && !this.#interim;
    if (this.#interim) this.#finals.push(this.#interim); // an engine that ends does not always say so
    this.#before.push(...this.#finals);
    this.#finals = [];
    this.#interim = "";
    this.#numEmptyEnds = wasEmpty ? this.#numEmptyEnds + 1 : 0;
    const isQuiet = ["", "no-speech", "aborted"].includes(this.#problem);
    if (!this.#wish && isQuiet && this.#numEmptyEnds < MOST_EMPTY_ENDS) {
      this.#problem = "";
      return this.recognition.start();
    }
    this.#hasEnded = true;
    const isCancelled = this.#wish === "cancelled";
    const problem = this.#wish ? (isQuiet ? "" : this.#problem) : this.#problem || "no-speech";
    this.emit("ended", { text: isCancelled ? "" : this.text, problem: isCancelled ? "" : problem });
  }

  /** @param {string[]} pieces */
  #joined(pieces) {
    const separator = WITHOUT_SPACES.test(this.language) ? "" : " ";
    return pieces.map((piece) => piece.trim()).filter(Boolean).join(separator);
  }
}
