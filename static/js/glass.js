// @ts-check
/**
 * Opens answers: how one came about, in the side panel; and how sure the model was of each token, in
 * the place of its prose. Both modules are loaded when they are first needed.
 */

import { element } from "./dom.js";
import { gettext } from "./i18n.js";

/** @typedef {import("./token-view.js").Branch & {answer: string}} TokenBranch */

export class Glass {
  /** @type {string | null} the message whose trace is open */
  #shown = null;
  /** @type {Map<string, import("./token-view.js").TokenView>} message → its token view */
  #views = new Map();

  /**
   * @param {object} page
   * @param {import("./api.js").Api} page.api
   * @param {import("./side-panel.js").SidePanel} page.panel
   * @param {(model: string) => string} page.titleOf
   * @param {(message: string) => HTMLElement | null} page.rootOf
   * @param {((branch: TokenBranch) => void) | null} page.branch go on with another token
   * @param {(message: string) => boolean} page.isFromDocuments
   * @param {(message: string, chunks: number[]) => void} page.askWithout passages of documents
   * @param {(words: string) => void} page.tell
   */
  constructor(page) {
    this.page = page;
    page.panel.addEventListener("closed", () => (this.#shown = null));
  }

  /** Another conversation is shown. */
  reset() {
    this.page.panel.close();
    for (const message of [...this.#views.keys()]) this.#hideTokens(message);
  }

  /**
   * Open the trace of an answer, or close it where it is open.
   * @param {string} message
   * @param {HTMLElement} opener
   */
  async toggle(message, opener) {
    const { api, panel, titleOf } = this.page;
    if (this.#shown === message) return panel.close();
    panel.open(gettext("How this answer came about"), note(gettext("Opening"), { "aria-busy": "true" }), opener);
    this.#shown = message;
    try {
      const [trace, { renderTrace }, documents] = await Promise.all([
        api.trace(message), import("./trace-view.js"), this.#documents(message),
      ]);
      const looks = {
        replay: (/** @type {AbortSignal} */ signal) => api.replay(message, signal),
        toggleTokens: (/** @type {HTMLElement} */ button) => this.toggleTokens(message, button),
        showsTokens: this.#views.has(message),
      };
      if (this.#shown === message) panel.body.replaceChildren(renderTrace(trace, titleOf(trace.model), looks, documents));
    } catch (error) {
      const { message: words } = /** @type {Error} */ (error);
      if (this.#shown === message) panel.body.replaceChildren(note(words, { role: "alert" }));
    }
  }

  /**
   * What was found in documents for an answer.
   * @param {string} message
   */
  async #documents(message) {
    const { api, isFromDocuments, askWithout } = this.page;
    if (!isFromDocuments(message)) return null;
    const [told, { renderRetrieval }] = await Promise.all([api.retrieval(message), import("./retrieval-view.js")]);
    return renderRetrieval(told, (chunks) => askWithout(message, chunks));
  }

  /**
   * Show an answer token by token, or its prose again.
   * @param {string} message
   * @param {HTMLElement} button tells whether it does
   */
  async toggleTokens(message, button) {
    if (this.#views.has(message)) {
      this.#hideTokens(message);
      button.setAttribute("aria-pressed", "false");
      return;
    }
    button.setAttribute("aria-busy", "true");
    try {
      const [{ turns }, { TokenView }] = await Promise.all([this.page.api.tokens(message), import("./token-view.js")]);
      const { branch } = this.page;
      const view = new TokenView(turns, branch && ((at) => branch({ ...at, answer: message })));
      this.#showTokens(message, view);
      button.setAttribute("aria-pressed", "true");
    } catch (error) {
      this.page.tell(/** @type {Error} */ (error).message);
    } finally {
      button.removeAttribute("aria-busy");
    }
  }

  /**
   * @param {string} message
   * @param {import("./token-view.js").TokenView} view
   */
  #showTokens(message, view) {
    const root = this.page.rootOf(message);
    if (!root) return;
    this.#views.set(message, view);
    root.querySelector(".message__parts")?.after(view.root);
    root.toggleAttribute("data-tokens", true);
    if (this.page.panel.isSheet) this.page.panel.close();
    root.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} message */
  #hideTokens(message) {
    const view = this.#views.get(message);
    this.#views.delete(message);
    view?.hideCard();
    view?.root.closest(".message")?.removeAttribute("data-tokens");
    view?.root.remove();
  }
}

/**
 * @param {string} words
 * @param {Record<string, string>} attributes
 */
function note(words, attributes) {
  return element("p", { class: "trace__note", ...attributes }, [words]);
}
