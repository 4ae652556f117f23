// @ts-check
/**
 * The voices of the device (Web Speech API). Only local ones are asked: browsers have others, which send
 * the text to their maker.
 *
 * @typedef {Pick<SpeechSynthesis, "speak" | "cancel" | "pause" | "resume" | "getVoices" | "addEventListener">} Synthesis
 */

const FOUND_WITHIN_MS = 500;

export class DeviceVoice {
  /** @type {(() => void) | null} ends what is spoken now */
  #stop = null;

  /**
   * @param {Synthesis | undefined} [synthesis]
   * @param {typeof SpeechSynthesisUtterance | undefined} [Utterance]
   */
  constructor(synthesis = globalThis.speechSynthesis, Utterance = globalThis.SpeechSynthesisUtterance) {
    this.synthesis = synthesis;
    this.Utterance = Utterance;
  }

  /** Those that speak here. */
  get #voices() {
    return this.Utterance ? (this.synthesis?.getVoices() ?? []).filter((voice) => voice.localService) : [];
  }

  /** Whether there is one. Some browsers look for them once they are asked, and tell when they know. */
  async isThere() {
    if (!this.#voices.length && this.synthesis && this.Utterance) {
      await new Promise((resolve) => {
        this.synthesis?.addEventListener?.("voiceschanged", resolve, { once: true });
        setTimeout(resolve, FOUND_WITHIN_MS);
      });
    }
    return this.#voices.length > 0;
  }

  /** The local voice for a language; the device's own choice of several. @param {string} language as "de" */
  voiceFor(language) {
    const own = this.#voices.filter((voice) => voice.lang.toLowerCase().split(/[-_]/)[0] === language);
    return own.find((voice) => voice.default) ?? own[0];
  }

  /**
   * All pieces, one after the other. Rejects with an Error where none of its voices knows the language.
   * @param {string[]} pieces
   * @param {string} language as "de"
   */
  async speak(pieces, language) {
    const { synthesis, Utterance } = this;
    const voice = this.voiceFor(language);
    if (!synthesis || !Utterance || !voice) throw new Error("no voice");
    await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
      this.#stop = resolve;
      for (const piece of pieces) {
        const utterance = new Utterance(piece);
        utterance.voice = voice;
        utterance.lang = voice.lang;
        utterance.onerror = resolve;
        if (piece === pieces.at(-1)) utterance.onend = resolve;
        synthesis.speak(utterance);
      }
    });
  }

  pause() {
    this.synthesis?.pause();
  }

  resume() {
    this.synthesis?.resume();
  }

  stop() {
    this.synthesis?.cancel();
    this.synthesis?.resume(); // else the next text would wait, too
    this.#stop?.();
    this.#stop = null;
  }
}
