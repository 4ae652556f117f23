// @ts-check
/**
 * <status-bar>: one line above the composer for what stands in the way, the most important first:
 * signed out, offline, the model failed, the model is loading. Its first child is read
 * out: nothing runs on in it.
 */

import { element, find, icon, morphChildren, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { percent } from "./words.js";

/**
 * @typedef {{iconName: string, tone: string, text: string, said?: string, progress?: number,
 *   action?: {words: string, event: string}}} Notice
 *   `said`: read out, unless the announcer speaks
 */

export class StatusBar extends HTMLElement {
  /** @type {{state: string, retryAt: number, wasOpen: boolean}} */
  #connection = { state: "connecting", retryAt: 0, wasOpen: false };
  /** @type {any} */
  #model = null;
  #ticking = 0;

  connectedCallback() {
    this.addEventListener("click", (event) => {
      const button = /** @type {Element} */ (event.target).closest("button");
      if (button) this.dispatchEvent(new Event(button.name));
    });
  }

  /**
   * @param {import("./socket.js").SocketState} state
   * @param {number} retryAt
   */
  setConnection(state, retryAt) {
    const wasOpen = this.#connection.wasOpen || state === "open";
    this.#connection = { state, retryAt, wasOpen };
    clearInterval(this.#ticking);
    if (state === "waiting") this.#ticking = window.setInterval(() => this.#show(), 500);
    this.#show();
  }

  /** @param {any} model the state of the chosen model */
  setModel(model) {
    this.#model = model;
    this.#show();
  }

  #show() {
    const notice = this.#ofConnection() ?? this.#ofModel();
    const wanted = document.createDocumentFragment();
    if (notice) wanted.append(render(notice));
    setText(find(this, "p"), notice?.said ?? "");
    morphChildren(this, wanted, 1); // the button stays while the seconds are counted
  }

  /** @returns {Notice | null} */
  #ofConnection() {
    const { state, retryAt, wasOpen } = this.#connection;
    if (state === "signed-out") {
      const action = { words: gettext("Sign in"), event: "sign-in" };
      const text = gettext("You are signed out. What you wrote is kept.");
      return { iconName: "circle-alert", tone: "danger", text, said: text, action };
    }
    if (state === "open" || (state === "connecting" && !wasOpen && !retryAt)) return null;
    const wait = Math.max(1, Math.ceil((retryAt - Date.now()) / 1000));
    const next = state === "connecting" ? gettext("Trying now.") : gettext("Trying again in %(n)s s.", { n: wait });
    const text = `${gettext("No connection. Nothing is lost.")} ${next}`;
    return { iconName: "wifi-off", tone: "warm", text, action: { words: gettext("Try now"), event: "retry" } };
  }

  /** @returns {Notice | null} */
  #ofModel() {
    if (this.#model?.state === "loading") {
      const { title, detail, progress } = this.#model;
      const about = detail ? ` · ${detail}` : "";
      const text = gettext("%(model)s is loading · %(about)s. You can write already.", { model: title, about: `${percent(progress)}${about}` });
      return { iconName: "box", tone: "", text, said: gettext("%(model)s is loading.", { model: title }), progress };
    }
    if (this.#model?.state === "failed") {
      const text = gettext("%(model)s cannot answer: %(reason)s", { model: this.#model.title, reason: this.#model.detail || gettext("it did not load") });
      const action = { words: gettext("Load again"), event: "load" };
      return { iconName: "circle-alert", tone: "danger", text, said: text, action };
    }
    return null;
  }
}

/** @param {Notice} notice */
function render({ iconName, tone, text, progress, action }) {
  const bar = element("div", { class: "status", "data-tone": tone });
  bar.append(icon(iconName), element("span", {}, [text]));
  if (action) bar.append(element("button", { type: "button", name: action.event }, [action.words]));
  if (progress !== undefined) {
    const value = String(progress);
    bar.append(element("progress", { class: "progress", max: "1", value, "aria-label": gettext("Loading") }));
  }
  return bar;
}

customElements.define("status-bar", StatusBar);
