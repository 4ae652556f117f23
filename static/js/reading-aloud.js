// @ts-check
/**
 * Reads a text aloud: one at a time, sentence by sentence, since some engines end a long utterance by
 * themselves after a quarter of a minute. It emits "changed" whenever it begins, pauses, goes on or ends.
 *
 * @typedef {object} Voice
 * @property {(pieces: string[], language: string) => Promise<void>} speak
 * @property {() => void} pause
 * @property {() => void} resume
 * @property {() => void} stop
 */

import { Emitter } from "./emitter.js";

const LONGEST_CHARS = 200;

export class ReadingAloud extends Emitter {
  /** What is read, by the name that it was given. @type {string | null} */
  #reads = null;
  #number = 0;
  isPaused = false;

  /** @param {Voice} voice */
  constructor(voice) {
    super();
    this.voice = voice;
  }

  get isReadingAny() {
    return this.#reads !== null;
  }

  /** @param {string} name */
  isReading(name) {
    return this.#reads === name;
  }

  /**
   * Until it was read, or is stopped. Rejects where the voice fails.
   * @param {string} name
   * @param {string} text plain
   * @param {string} language of the text, as "de"
   */
  async read(name, text, language) {
    this.stop();
    const pieces = spoken(text, language);
    if (!pieces.length) return;
    const number = (this.#number += 1);
    this.#reads = name;
    this.emit("changed");
    try {
      await this.voice.speak(pieces, language);
    } finally {
      if (this.#number === number) this.#ended(); // else another one is read by now
    }
  }

  pause() {
    if (!this.isReadingAny || this.isPaused) return;
    this.isPaused = true;
    this.voice.pause();
    this.emit("changed");
  }

  resume() {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.voice.resume();
    this.emit("changed");
  }

  stop() {
    if (!this.isReadingAny) return;
    this.#number += 1;
    this.voice.stop();
    this.#ended();
  }

  #ended() {
    this.#reads = null;
    this.isPaused = false;
    this.emit("changed");
  }
}

/**
 * A text in the pieces in which it is spoken: sentences, and of long ones as many words as fit.
 * @param {string} text
 * @param {string} language
 * @returns {string[]}
 */
export function spoken(text, language) {
  const sentences = [...new Intl.Segmenter(language, { granularity: "sentence" }).segment(text)];
  return sentences.flatMap(({ segment }) => cut(segment.trim()));
}

/**
 * @param {string} sentence
 * @returns {string[]}
 */
function cut(sentence) {
  /** @type {string[]} */
  const pieces = [];
  for (const word of sentence.split(/\s+/).filter(Boolean)) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length + word.length < LONGEST_CHARS) pieces[pieces.length - 1] = `${last} ${word}`;
    else pieces.push(word);
  }
  return pieces;
}
