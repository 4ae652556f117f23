// @ts-check
/**
 * Reads a text aloud with the voices of the device: one at a time, sentence by sentence, since some
 * engines end a long utterance by themselves after a quarter of a minute.
 *
 * @typedef {Pick<SpeechSynthesis, "speak" | "cancel" | "getVoices">} Voice
 */

const LONGEST_CHARS = 200;

export class ReadingAloud {
  /** What is read, by the name that it was given. @type {string | null} */
  #reads = null;

  /**
   * @param {Voice | undefined} [voice] of the device, where it has one
   * @param {typeof SpeechSynthesisUtterance | undefined} [Utterance]
   */
  constructor(voice = globalThis.speechSynthesis, Utterance = globalThis.SpeechSynthesisUtterance) {
    this.voice = voice;
    this.Utterance = Utterance;
  }

  get canRead() {
    return Boolean(this.voice && this.Utterance);
  }

  /** @param {string} name */
  isReading(name) {
    return this.#reads === name;
  }

  /**
   * @param {string} name
   * @param {string} text plain
   * @param {string} language of the page, where no better is known
   */
  read(name, text, language) {
    if (!this.voice || !this.Utterance) return;
    this.stop();
    const pieces = spoken(text, language);
    if (!pieces.length) return;
    this.#reads = name;
    for (const piece of pieces) {
      const utterance = new this.Utterance(piece);
      utterance.lang = language;
      utterance.onerror = () => this.#ended(name);
      if (piece === pieces.at(-1)) utterance.onend = () => this.#ended(name);
      this.voice.speak(utterance);
    }
  }

  stop() {
    this.#reads = null;
    this.voice?.cancel();
  }

  /** @param {string} name */
  #ended(name) {
    if (this.#reads === name) this.#reads = null;
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
