// @ts-check
/** Which of a list's rows are chosen: one by one, or up to one with Shift. Pure state. */

export class Selection {
  /** @type {Set<string>} */
  chosen = new Set();
  /** Whether rows are being chosen, even if none is yet. */
  isOn = false;
  #anchor = "";

  get size() {
    return this.chosen.size;
  }

  /**
   * Choose a row, or not any more.
   * @param {string} id
   */
  toggle(id) {
    this.isOn = true;
    this.#anchor = id;
    if (!this.chosen.delete(id)) this.chosen.add(id);
  }

  /**
   * Choose all rows from the one that was touched last up to this one.
   * @param {string} id
   * @param {string[]} order of the rows that can be seen
   * @param {string} [start] where to begin when none was touched
   */
  extend(id, order, start = id) {
    const from = order.indexOf(order.includes(this.#anchor) ? this.#anchor : start);
    const to = order.indexOf(id);
    const ends = [from < 0 ? to : from, to];
    for (const row of order.slice(Math.min(...ends), Math.max(...ends) + 1)) this.chosen.add(row);
    this.isOn = true;
    this.#anchor = id;
  }

  /** @param {string[]} order all rows that can be seen */
  all(order) {
    for (const row of order) this.chosen.add(row);
  }

  /** @param {string} id that is no longer there */
  drop(id) {
    this.chosen.delete(id);
  }

  clear() {
    this.chosen.clear();
    this.isOn = false;
    this.#anchor = "";
  }
}
