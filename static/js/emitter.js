// @ts-check
/** Named listeners, for the plain objects that are no DOM nodes. */

export class Emitter {
  /** @type {Map<string, Set<(value: any) => void>>} */
  #listeners = new Map();

  /**
   * @param {string} name
   * @param {(value: any) => void} listener
   */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
  }

  /**
   * @param {string} name
   * @param {any} [value]
   */
  emit(name, value) {
    for (const listener of this.#listeners.get(name) ?? []) listener(value);
  }
}
