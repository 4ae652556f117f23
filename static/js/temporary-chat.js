// @ts-check
/** The temporary chat on the page: begin one, keep it, and ask before it is lost. */

import { confirmed } from "./dialog.js";
import { find } from "./dom.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";

export class TemporaryChat {
  #clientId = "";
  /** The chat that is on its way to the server. @type {import("./conversation-store.js").ConversationStore | null} */
  #keeping = null;

  /**
   * @param {object} page
   * @param {import("./session.js").ChatSession} page.session
   * @param {import("./api.js").Api} page.api
   * @param {(words: string) => void} page.tell
   * @param {() => string | null} page.model name of the one that answers next
   * @param {() => boolean} page.isTyped whether a text waits to be sent
   * @param {() => void} page.leave go to the address of a new chat
   * @param {(conversation: any, messages: any[]) => void} page.kept
   */
  constructor(page) {
    this.page = page;
    this.root = find(document, "#chat");
    this.button = find(document, "[data-temporary]");
    this.button.addEventListener("click", () => this.toggle());
    this.keepButton = find(document, "[data-keep]");
    this.keepButton.addEventListener("click", () => this.keep());
  }

  get #isOn() {
    return this.page.session.store.isTemporary;
  }

  get #hasBegun() {
    return this.#isOn && this.page.session.store.leaf !== null;
  }

  get wouldBeLost() {
    return this.#hasBegun || (this.#isOn && this.page.isTyped());
  }

  /** Begin a temporary chat, or go back to a usual one. */
  async toggle() {
    if (!(await this.mayLeave())) return;
    const { session, leave } = this.page;
    const wasOn = this.#isOn;
    leave();
    if (wasOn) {
      session.open(null);
      return;
    }
    this.#clientId = newId();
    session.openTemporary();
  }

  /** Show whether the chat is temporary. */
  show() {
    this.button.setAttribute("aria-pressed", String(this.#isOn));
    this.root.toggleAttribute("data-temporary-chat", this.#isOn);
    find(document, ".temporary").hidden = !this.#isOn;
    this.keepButton.hidden = !this.#hasBegun;
    find(this.root, "#scroller").inert = this.#keeping === this.page.session.store; // what is said now is not kept
  }

  /** Keep it as a chat like any other. */
  async keep() {
    const { session, tell } = this.page;
    const { store } = session;
    if (this.#keeping) return;
    if (store.isBusy) {
      tell(gettext("It can be kept as soon as the answer has ended."));
      return;
    }
    this.#keeping = store;
    this.show();
    try {
      const { keep } = await import("./temporary-keeping.js");
      await keep(this.page, store, this.#clientId);
    } catch (error) {
      tell(/** @type {Error} */ (error).message);
    } finally {
      this.#keeping = null;
      this.show();
    }
  }

  /** Whether another chat may be shown now: nothing is lost by it, or the reader says so. */
  async mayLeave() {
    if (!this.wouldBeLost) return true;
    return confirmed({
      title: gettext("Leave the temporary chat?"),
      text: this.#hasBegun
        ? gettext("Nothing of it is stored: it will be gone for good. You can keep it instead.")
        : gettext("What you have written is not stored: it will be gone for good."),
      action: gettext("Leave it"),
    });
  }
}
