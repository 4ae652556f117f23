// @ts-check
/** A speech model of the site reads aloud: while one piece sounds, the next one is asked for. */

const PIECE_CHARS = 300; // sentences go together: each request begins with a wait

export class SiteVoice {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AbortController | null} */
  #asking = null;
  /** @type {(() => void) | null} */
  #stop = null;

  /** @param {(text: string, signal: AbortSignal) => Promise<ArrayBuffer>} fetchSound throws with words */
  constructor(fetchSound) {
    this.fetchSound = fetchSound;
  }

  /**
   * All pieces, one after the other; ends early, and well, where it is stopped.
   * @param {string[]} sentences
   */
  async speak(sentences) {
    const asking = (this.#asking = new AbortController());
    const context = (this.#context = new AudioContext());
    const stopped = new Promise((/** @type {(value?: unknown) => void} */ resolve) => (this.#stop = () => resolve()));
    const pieces = joined(sentences);
    try {
      let next = this.#sound(pieces[0], context, asking.signal);
      for (const [index] of pieces.entries()) {
        const sound = await next;
        if (asking.signal.aborted) return;
        if (index + 1 < pieces.length) {
          next = this.#sound(pieces[index + 1], context, asking.signal);
          next.catch(() => {}); // told when it is its turn
        }
        await Promise.race([played(sound, context), stopped]);
        if (asking.signal.aborted) return;
      }
    } catch (error) {
      if (!asking.signal.aborted) throw error;
    } finally {
      context.close();
      if (this.#context === context) this.#context = this.#asking = this.#stop = null;
    }
  }

  pause() {
    this.#context?.suspend();
  }

  resume() {
    this.#context?.resume();
  }

  stop() {
    this.#asking?.abort();
    this.#stop?.();
  }

  /**
   * @param {string} piece
   * @param {AudioContext} context
   * @param {AbortSignal} signal
   */
  async #sound(piece, context, signal) {
    return context.decodeAudioData(await this.fetchSound(piece, signal));
  }
}

/**
 * @param {AudioBuffer} sound
 * @param {AudioContext} context
 */
function played(sound, context) {
  const source = context.createBufferSource();
  source.buffer = sound;
  source.connect(context.destination);
  source.start();
  return new Promise((resolve) => (source.onended = resolve));
}

/**
 * Sentences together, as long as they are short; the first one alone, so that something is heard soon.
 * @param {string[]} sentences
 * @returns {string[]}
 */
export function joined(sentences) {
  const pieces = sentences.slice(0, 1);
  for (const sentence of sentences.slice(1)) {
    const last = pieces.at(-1) ?? "";
    const isFirst = pieces.length === 1;
    if (!isFirst && last.length + sentence.length < PIECE_CHARS) pieces[pieces.length - 1] = `${last} ${sentence}`;
    else pieces.push(sentence);
  }
  return pieces;
}
