// @ts-check
/** Something heavy that is fetched when it is first wanted; a failed fetch is tried anew. */

/** @template T */
export class Lazy {
  /** @type {T | null} */
  value = null;
  #isPending = false;
  /** @type {Set<() => void>} */
  #waiting = new Set();

  /** @param {() => Promise<T>} load */
  constructor(load) {
    this.load = load;
  }

  /**
   * The value if it is there; else null, and `whenReady` is called once it is.
   * @param {() => void} [whenReady]
   */
  get(whenReady) {
    if (this.value !== null) return this.value;
    if (whenReady) this.#waiting.add(whenReady);
    if (!this.#isPending) this.#fetch();
    return null;
  }

  async #fetch() {
    this.#isPending = true;
    try {
      this.value = await this.load();
      for (const call of this.#waiting) call();
    } catch {
      // Offline, perhaps: what waited shows its source, and the next wish tries again.
    } finally {
      this.#waiting.clear();
      this.#isPending = false;
    }
  }
}
