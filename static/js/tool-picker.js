// @ts-check
/**
 * Picks the tool servers whose tools the chat may use: a button in the composer that says how many are on,
 * and a card with a box for each. The server has drawn both, where there is one that this reader may use.
 */

import { find, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";

export class ToolPicker {
  /** Clicks wait for the one before: each says all that is on. */
  #saving = Promise.resolve();
  /** What was clicked and is not saved yet. @type {{chat: string | null, servers: string[]} | null} */
  #wanted = null;

  /**
   * @param {HTMLElement} composer
   * @param {object} page
   * @param {import("./chat-setup.js").ChatSetup} page.setup
   * @param {() => {id: string, tool_servers: string[]} | null} page.conversation null: the chat that begins next
   * @param {() => boolean} page.isTemporary
   * @param {(words: string) => void} page.say
   */
  constructor(composer, page) {
    this.page = page;
    this.button = find(composer, ".composer__tools");
    this.card = find(composer, "#tool-card");
    /** @type {HTMLInputElement[]} */
    this.boxes = [...this.card.querySelectorAll("input")];
    this.card.addEventListener("change", () => this.#choose());
    find(this.card, "fieldset").disabled = false;
    this.usualName = this.button.getAttribute("aria-label") ?? "";
  }

  /** Another chat is shown, or its tools are others. @param {boolean} canUse whether its model can call tools */
  show(canUse) {
    const conversation = this.page.conversation();
    const wanted = this.#wanted?.chat === (conversation?.id ?? null) ? this.#wanted.servers : null;
    const on = new Set(wanted ?? this.page.setup.toolServers(conversation));
    for (const box of this.boxes) {
      box.checked = on.has(box.value);
      const row = /** @type {HTMLElement} */ (box.closest("label"));
      row.hidden = row.dataset.leavesTrace !== undefined && this.page.isTemporary();
    }
    if (!wanted) this.#count();
    find(this.card, "[data-cannot]").hidden = canUse;
  }

  #count() {
    const count = this.boxes.filter((box) => box.checked && !box.closest("[hidden]")).length;
    const words = ngettext("%(n)s is on", "%(n)s are on", count);
    this.button.setAttribute("aria-label", count ? `${this.usualName}, ${words}` : this.usualName);
    const badge = find(this.button, ".composer__count");
    setText(badge, count ? String(count) : "");
    badge.hidden = !count;
  }

  #choose() {
    const conversation = this.page.conversation();
    const known = new Set(this.boxes.map((box) => box.value));
    // Those that only somebody else may use stay with the chat: its reader may get to use them again.
    const others = this.page.setup.toolServers(conversation).filter((name) => !known.has(name));
    const servers = [...others, ...this.boxes.filter((box) => box.checked).map((box) => box.value)];
    const wanted = (this.#wanted = { chat: conversation?.id ?? null, servers });
    this.#saving = this.#saving.then(async () => {
      await this.#save(conversation, servers);
      if (this.#wanted === wanted) this.#wanted = null;
    });
  }

  /**
   * @param {{id: string, tool_servers: string[]} | null} conversation
   * @param {string[]} wanted
   */
  async #save(conversation, wanted) {
    try {
      await this.page.setup.useTools(conversation, wanted);
      this.#count(); // not sooner: what is asked before has the tools of before
    } catch (error) {
      this.#wanted = null;
      this.page.say(/** @type {Error} */ (error).message || gettext("That was not saved."));
      this.show(find(this.card, "[data-cannot]").hidden);
    }
  }
}
