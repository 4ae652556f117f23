// @ts-check
/** A list of one's share links: copy, open, revoke. In the share dialog and in the settings. */

import { copyText, element, icon } from "./dom.js";
import { gettext } from "./i18n.js";
import { aboutShare } from "./share-words.js";

/** @typedef {import("./share-words.js").Share} Share */

export class ShareList extends EventTarget {
  /** @type {Share[]} */
  #shares = [];
  /** @type {string | null} */
  #next = null;
  /** @type {string | undefined} */
  #conversation;

  /**
   * Events: "changed" after each rendering, "say" with words in `detail`.
   * @param {HTMLElement} root
   * @param {import("./api.js").Api} api
   */
  constructor(root, api) {
    super();
    this.root = root;
    this.api = api;
  }

  get isEmpty() {
    return this.#shares.length === 0;
  }

  /** @param {string} [conversation] all conversations without one */
  async load(conversation) {
    this.#conversation = conversation;
    const { items, next } = await this.api.shares({ conversation });
    this.#shares = items;
    this.#next = next;
    this.#render();
  }

  /** @param {Share} share */
  add(share) {
    this.#shares.unshift(share);
    this.#render();
  }

  clear() {
    this.#shares = [];
    this.#next = null;
    this.#render();
  }

  #render() {
    const rows = this.#shares.map((share) => this.#row(share));
    if (this.#next) rows.push(element("li", {}, [this.#button(gettext("More"), () => this.#more())]));
    this.root.replaceChildren(...rows);
    this.dispatchEvent(new Event("changed"));
  }

  /** Where they do not come, the button stays. */
  async #more() {
    const num = this.#shares.length;
    try {
      const { items, next } = await this.api.shares({ conversation: this.#conversation, before: this.#next ?? "" });
      this.#shares.push(...items);
      this.#next = next;
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message);
      return;
    }
    this.#render();
    this.#focusNear(num);
  }

  /** @param {Share} share */
  #row(share) {
    const title = share.title || gettext("New chat");
    const name = share.url
      ? element("a", { href: share.url, dir: "auto", target: "_blank", rel: "noopener" }, [title])
      : element("span", { dir: "auto" }, [title]);
    const about = element("span", { class: "share-list__about" }, [aboutShare(share)]);
    const actions = element("span", { class: "share-list__actions" });
    if (share.url) actions.append(this.#button(gettext("Copy link"), () => this.copy(share), "copy"));
    const revoke = this.#button(gettext("Revoke"), () => this.#revoke(share), "trash");
    revoke.classList.add("small-button--danger");
    actions.append(revoke);
    for (const button of actions.children) {
      button.setAttribute("aria-label", `${button.textContent}: ${title}`);
    }
    return element("li", { "data-share": share.id }, [
      element("span", { class: "share-list__main" }, [name, about]), actions,
    ]);
  }

  /**
   * @param {string} words
   * @param {() => void} act
   * @param {string} [iconName]
   */
  #button(words, act, iconName) {
    const button = element("button", { type: "button", class: "small-button" });
    if (iconName) button.append(icon(iconName));
    button.append(words);
    button.addEventListener("click", act);
    return button;
  }

  /** @param {Share} share */
  async copy({ url }) {
    try {
      await copyText(new URL(url ?? "", location.href).href);
      this.#say(gettext("The link is copied."));
    } catch {
      this.#say(gettext("The browser did not allow copying. The link is in the list."));
    }
  }

  /** @param {Share} share */
  async #revoke({ id }) {
    try {
      await this.api.revokeShare(id);
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message);
      return;
    }
    const place = this.#shares.findIndex((share) => share.id === id);
    this.#shares.splice(place, 1);
    this.#render();
    this.#focusNear(place);
    this.#say(gettext("The link is revoked. It opens nothing any more."));
  }

  /**
   * What had the focus is gone: go to what stands there now.
   * @param {number} place
   */
  #focusNear(place) {
    const row = this.root.children[Math.min(place, this.#shares.length - 1)];
    const button = row?.querySelector("button") ?? this.root.closest("dialog")?.querySelector("[data-close]");
    /** @type {HTMLElement | null | undefined} */ (button)?.focus();
  }

  /** @param {string} detail */
  #say(detail) {
    this.dispatchEvent(new CustomEvent("say", { detail }));
  }
}
