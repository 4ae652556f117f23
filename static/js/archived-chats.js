// @ts-check
/**
 * <archived-chats>: the archive in the settings, where chats are taken out of it or deleted.
 * Events: "done" {text, undo}, "problem" message.
 */

import { Arranging } from "./arranging.js";
import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { forgetDeleted } from "./kept-chats.js";
import { shortDate } from "./words.js";

/** @typedef {import("./library.js").Conversation} Conversation */

export class ArchivedChats extends HTMLElement {
  /** @type {Map<string, Conversation>} */
  #chats = new Map();
  /** @type {string | null} */
  #next = null;
  #list = find(this, "ul");
  #state = find(this, "[data-state]");
  #more = find(this, "[data-more]");

  /** @param {import("./api.js").Api} api */
  async show(api) {
    const arranging = new Arranging(api);
    arranging.on("changed", (chats) => this.#take(chats));
    arranging.on("deleted", (ids) => this.#drop(ids));
    for (const name of ["done", "problem"]) {
      arranging.on(name, (detail) => this.dispatchEvent(new CustomEvent(name, { detail })));
    }
    this.#list.addEventListener("click", (/** @type {Event} */ event) => {
      const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
      const chat = this.#chats.get(button?.dataset.chat ?? "");
      if (!button || !chat) return;
      if ("restore" in button.dataset) arranging.archive([chat], false);
      else arranging.remove([chat]);
    });
    this.#more.addEventListener("click", () => this.#load(api));
    await this.#load(api);
  }

  /** All chats are deleted. */
  clear() {
    this.#chats.clear();
    this.#next = null;
    this.#render();
  }

  /** @param {import("./api.js").Api} api */
  async #load(api) {
    try {
      const { items, next } = await api.conversations({ archived: true, cursor: this.#next });
      for (const chat of items) this.#chats.set(chat.id, chat);
      this.#next = next;
      this.#render();
    } catch (error) {
      setText(this.#state, /** @type {Error} */ (error).message);
      setText(this.#more, gettext("Try again"));
      this.#more.hidden = false;
    }
  }

  /** @param {Conversation[]} chats */
  #take(chats) {
    for (const chat of chats) {
      if (chat.archived) this.#chats.set(chat.id, chat);
      else this.#chats.delete(chat.id);
    }
    this.#render();
  }

  /** @param {string[]} ids */
  #drop(ids) {
    for (const id of ids) this.#chats.delete(id);
    this.#render();
    forgetDeleted(ids);
  }

  #render() {
    const chats = [...this.#chats.values()];
    chats.sort((a, b) => b.updated_at.localeCompare(a.updated_at));
    this.#list.replaceChildren(...chats.map(row));
    setText(this.#state, chats.length ? "" : gettext("No chat is archived. A chat's menu has “Archive”."));
    setText(this.#more, gettext("Show more"));
    this.#more.hidden = this.#next === null;
  }
}

/** @param {Conversation} chat */
function row({ id, url, title, updated_at }) {
  const name = title || gettext("New chat");
  return element("li", { class: "setting" }, [
    element("span", { class: "setting__main" }, [
      element("a", { href: url, dir: "auto" }, [name]),
      element("span", { class: "setting__about numbers" }, [` ${shortDate(updated_at)}`]),
    ]),
    element("span", { class: "archived__actions" }, [
      action("archive-restore", gettext("Unarchive"), name, { "data-chat": id, "data-restore": "" }),
      action("trash", gettext("Delete"), name, { "data-chat": id }),
    ]),
  ]);
}

/**
 * @param {string} iconName
 * @param {string} words
 * @param {string} name
 * @param {Record<string, string>} more
 */
function action(iconName, words, name, more) {
  const attributes = { type: "button", class: "small-button", "aria-label": `${words}: ${name}`, ...more };
  return element("button", attributes, [icon(iconName), words]);
}

customElements.define("archived-chats", ArchivedChats);
