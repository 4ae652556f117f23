// @ts-check
/** The list of shortcuts on the settings page, where each can be given other keys. */

import { chordOf, ownKeys, withOwnKeys } from "./bindings.js";
import { chatShortcuts } from "./commands.js";
import { element, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { keepOwnKeys, keysOf, objection } from "./key-choice.js";
import { keyWords } from "./shortcuts.js";

/** @typedef {import("./shortcuts.js").Shortcut} Shortcut */

const noActions = /** @type {any} */ (new Proxy({}, { get: () => () => {} }));

export class KeyboardSettings {
  /** With their usual keys. @type {Shortcut[]} */
  #usual = chatShortcuts(noActions, () => {});
  #own = ownKeys();

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} status says what happened
   * @param {HTMLButtonElement} reset
   */
  constructor(list, status, reset) {
    this.list = list;
    this.status = status;
    this.reset = reset;
    reset.addEventListener("click", () => this.#keep({}, gettext("All shortcuts have their usual keys again.")));
    this.#show();
  }

  #show() {
    const now = withOwnKeys(this.#usual, this.#own);
    const rows = Map.groupBy(this.#usual.keys(), (index) => this.#usual[index].words);
    this.list.replaceChildren(...[...rows].map(([words, ways]) => this.#row(words, ways, now)));
    this.reset.hidden = Object.keys(this.#own).length === 0;
  }

  /**
   * All keys that do the same.
   * @param {string} words
   * @param {number[]} ways
   * @param {Shortcut[]} now
   */
  #row(words, ways, now) {
    const keys = ways.flatMap((index) => this.#keysOf(now[index], this.#usual[index]));
    const row = [element("span", {}, [words]), element("span", { class: "keys__actions" }, keys)];
    return element("li", { class: "setting" }, row);
  }

  /**
   * @param {Shortcut} shortcut as it is now
   * @param {Shortcut} usual
   */
  #keysOf(shortcut, usual) {
    const keys = element("button", { type: "button", class: "keys", "data-keys": chordOf(usual) }, [
      element("kbd", {}, [keyWords(shortcut)]),
    ]);
    keys.setAttribute("aria-label", `${shortcut.words}: ${keyWords(shortcut)}. ${gettext("Change the keys")}`);
    keys.addEventListener("click", () => this.#listen(keys, shortcut, usual));
    return this.#own[chordOf(usual)] ? [this.#back(usual), keys] : [keys];
  }

  /** @param {Shortcut} usual */
  #back(usual) {
    const label = gettext("Usual keys: %(keys)s", { keys: keyWords(usual) });
    const button = element("button", { type: "button", class: "icon-button", title: label }, [icon("rotate-cw")]);
    button.setAttribute("aria-label", `${usual.words}. ${label}`);
    button.addEventListener("click", () => this.#choose(usual, null));
    return button;
  }

  /**
   * The next keys are meant.
   * @param {HTMLElement} button
   * @param {Shortcut} shortcut
   * @param {Shortcut} usual
   */
  #listen(button, shortcut, usual) {
    const stop = new AbortController();
    const end = () => {
      stop.abort();
      button.removeAttribute("data-listening");
      setText(button.firstElementChild ?? button, keyWords(shortcut));
    };
    button.setAttribute("data-listening", "");
    setText(button.firstElementChild ?? button, gettext("Press the new keys"));
    setText(this.status, `${shortcut.words}: ${gettext("press the new keys. Escape leaves it as it is.")}`);
    button.addEventListener("blur", end, { signal: stop.signal });
    const take = (/** @type {KeyboardEvent} */ event) => {
      const keys = keysOf(event);
      if (event.key === "Tab" && !event.ctrlKey && !event.altKey) return; // it leaves, as everywhere
      event.preventDefault();
      if (!keys) return;
      end();
      if (chordOf(keys) === "escape") return setText(this.status, "");
      const now = withOwnKeys(this.#usual, this.#own);
      const reason = objection(now, now[this.#usual.indexOf(usual)], keys);
      if (reason) return setText(this.status, `${keyWords(keys)}: ${reason}`);
      this.#choose(usual, keys);
    };
    button.addEventListener("keydown", take, { signal: stop.signal });
  }

  /**
   * @param {Shortcut} usual
   * @param {import("./bindings.js").Keys | null} keys null for the usual ones
   */
  #choose(usual, keys) {
    const { [chordOf(usual)]: _, ...others } = this.#own;
    const isTaken = keys === null && objection(withOwnKeys(this.#usual, others), usual, usual);
    if (isTaken) return setText(this.status, `${keyWords(usual)}: ${isTaken}`);
    const isUsual = keys === null || chordOf(keys) === chordOf(usual);
    const own = isUsual ? others : { ...others, [chordOf(usual)]: keys };
    this.#keep(own, `${usual.words}: ${keyWords(keys ?? usual)}.`);
    /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-keys="${CSS.escape(chordOf(usual))}"]`))?.focus();
  }

  /**
   * @param {import("./bindings.js").OwnKeys} own
   * @param {string} words
   */
  #keep(own, words) {
    this.#own = own;
    keepOwnKeys(own);
    this.#show();
    this.list.dispatchEvent(new Event("shortcuts", { bubbles: true })); // the chat below has them at once
    setText(this.status, words);
  }
}
