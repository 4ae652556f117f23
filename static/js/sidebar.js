// @ts-check
/**
 * <chat-sidebar>: the list of conversations by day, and what can be done with one.
 * Events: "open" conversation, "new", "deleted" id, "problem" message, "done" message.
 */

import { confirmed } from "./dialog.js";
import { element, find, icon } from "./dom.js";
import { placePopover } from "./popover.js";
import { renameIn } from "./rename.js";
import { closeSheet, listenForSidebar } from "./sidebar-panel.js";
import { dayGroup } from "./words.js";

/** @typedef {import("./conversation-store.js").Conversation} Conversation */

export class ChatSidebar extends HTMLElement {
  /** @type {HTMLElement} */
  list = find(this, ".chat-links");
  /** @type {HTMLElement} */
  menu = find(document, "#chat-menu");
  /** @type {import("./api.js").Api | null} */
  api = null;
  /** @type {Map<string, Conversation>} */
  #conversations = new Map();
  #current = "";
  /** The conversation whose menu is open. */
  #menuFor = "";
  /** @type {string | null} the cursor of the page behind; null: there is none */
  #next = null;
  #isLoading = false;
  /** @type {Map<string, Conversation | null>} what was heard since `refresh`; null: it is deleted */
  #heard = new Map();
  #isRenaming = false;

  connectedCallback() {
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.list.addEventListener("dblclick", (event) => this.#doubleClicked(event));
    find(this, ".sidebar__list").addEventListener("scroll", () => this.#loadMoreNearEnd());
    find(this.menu, "[data-rename]").addEventListener("click", () => this.#menuRename());
    find(this.menu, "[data-delete]").addEventListener("click", () => this.#menuDelete());
    document.addEventListener("click", (event) => this.#clickedAnywhere(event));
    listenForSidebar();
  }

  /**
   * @param {Conversation[]} newest the first page
   * @param {string | null} next the cursor of the page behind it
   */
  show(newest, next) {
    this.#conversations = new Map(newest.map((item) => [item.id, item]));
    this.#next = next;
    this.#render();
  }

  /**
   * Read the first page again. Returns its conversations, none if another reading has begun since.
   * @returns {Promise<Conversation[]>}
   */
  async refresh() {
    const heard = (this.#heard = new Map());
    /** @type {Conversation[]} */
    let newest = [];
    await this.#attempt(async () => {
      const { items, next } = await this.api?.conversations();
      if (heard !== this.#heard) return;
      // What came over the socket meanwhile is newer than what was read.
      const news = [...heard].flatMap(([, conversation]) => conversation ?? []);
      newest = items.filter((/** @type {Conversation} */ { id }) => !heard.has(id));
      this.show([...newest, ...news], next);
    });
    return newest;
  }

  /** @param {Conversation} conversation new or changed */
  update(conversation) {
    this.#heard.set(conversation.id, conversation);
    this.#conversations.set(conversation.id, conversation);
    this.#render();
  }

  /** @param {string} id */
  forget(id) {
    this.#heard.set(id, null);
    if (this.#conversations.delete(id)) this.#render();
  }

  /** @param {string | null} id the conversation that is shown */
  setCurrent(id) {
    this.#current = id ?? "";
    this.#render();
  }

  /** @param {string} id */
  async askToDelete(id) {
    const title = this.#conversations.get(id)?.title || "New chat";
    const question = {
      title: "Delete this chat?",
      text: `“${title}” and all its messages will be gone for good.`,
      action: "Delete",
    };
    if (!(await confirmed(question))) return;
    await this.#attempt(async () => {
      await this.api?.remove(id);
      this.forget(id);
      this.#tell("deleted", id);
      this.#tell("done", "The chat is deleted.");
    });
  }

  #render() {
    if (this.#isRenaming) return; // not under somebody's hands
    const all = [...this.#conversations.values()];
    all.sort((a, b) => b.updated_at.localeCompare(a.updated_at));
    /** @type {HTMLElement[]} */
    const rows = [];
    let group = "";
    for (const conversation of all) {
      const of = dayGroup(conversation.updated_at);
      if (of !== group) rows.push(element("li", { class: "sidebar__group" }, [of]));
      group = of;
      rows.push(this.#row(conversation));
    }
    if (!rows.length) {
      rows.push(element("li", { class: "sidebar__empty" }, ["Your chats will be listed here."]));
    }
    const focused = focusedRow();
    this.list.replaceChildren(...rows);
    if (focused) /** @type {any} */ (this.list.querySelector(focused))?.focus();
  }

  /** @param {Conversation} conversation */
  #row({ id, url, title, running }) {
    const link = element("a", { href: url, dir: "auto", title }, [title || "New chat"]);
    const row = element("li", { class: "chat-link", "data-conversation": id }, [link]);
    if (id === this.#current) link.setAttribute("aria-current", "page");
    if (running?.length) {
      row.dataset.running = "";
      link.append(element("span", { class: "visually-hidden" }, [" (answering now)"]));
    }
    const label = `More for ${title || "New chat"}`;
    const menu = { type: "button", class: "icon-button chat-link__menu", "aria-label": label };
    row.append(element("button", { ...menu, "data-menu": "", title: "More" }, [icon("ellipsis")]));
    return row;
  }

  /** @param {Event} event */
  #clicked(event) {
    const target = /** @type {Element} */ (event.target);
    const id = idAt(target);
    const button = target.closest("[data-menu]");
    if (button) this.#openMenu(id, button);
    else if (target.closest("a") && isPlain(event)) {
      event.preventDefault();
      closeSheet();
      if (id !== this.#current) this.#tell("open", this.#conversations.get(id));
    }
  }

  /** @param {Event} event */
  #doubleClicked(event) {
    const target = /** @type {Element} */ (event.target);
    if (!target.closest("a")) return;
    event.preventDefault();
    this.#rename(idAt(target));
  }

  /** @param {MouseEvent} event */
  #clickedAnywhere(event) {
    const target = /** @type {Element} */ (event.target);
    if (!target.closest("[data-new-chat]") || !isPlain(event)) return;
    event.preventDefault();
    closeSheet();
    this.#tell("new");
  }

  /**
   * @param {string} id
   * @param {Element} button
   */
  #openMenu(id, button) {
    this.#menuFor = id;
    this.menu.showPopover();
    placePopover(this.menu, button);
    find(this.menu, "button").focus();
  }

  #menuRename() {
    this.menu.hidePopover();
    this.#rename(this.#menuFor);
  }

  #menuDelete() {
    this.menu.hidePopover();
    this.askToDelete(this.#menuFor);
  }

  /** @param {string} id */
  async #rename(id) {
    const conversation = this.#conversations.get(id);
    const row = this.#rowOf(id);
    if (!conversation || !row) return;
    this.#isRenaming = true;
    const title = await renameIn(row, conversation.title);
    this.#isRenaming = false;
    if (title) this.#saveTitle(conversation, title);
    else this.#render();
    /** @type {any} */ (this.#rowOf(id)?.querySelector("a"))?.focus();
  }

  /**
   * @param {Conversation} conversation
   * @param {string} title
   */
  async #saveTitle(conversation, title) {
    this.update({ ...conversation, title });
    await this.#attempt(
      async () => {
        const saved = await this.api?.rename(conversation.id, title, conversation.version);
        this.update(saved.conversation);
      },
      () => this.update(conversation),
    );
  }

  async #loadMoreNearEnd() {
    const box = find(this, ".sidebar__list");
    const isFar = box.scrollHeight - box.scrollTop - box.clientHeight > 400;
    if (isFar || this.#next === null || this.#isLoading) return;
    this.#isLoading = true;
    await this.#attempt(async () => {
      const { items, next } = await this.api?.conversations(this.#next);
      for (const item of items) this.#conversations.set(item.id, item);
      this.#next = next;
      this.#render();
    });
    this.#isLoading = false;
  }

  /**
   * @param {() => Promise<void>} work
   * @param {() => void} [undo]
   */
  async #attempt(work, undo) {
    try {
      await work();
    } catch (error) {
      undo?.();
      this.#tell("problem", /** @type {Error} */ (error).message);
    }
  }

  /** @param {string} id */
  #rowOf(id) {
    const row = this.list.querySelector(`[data-conversation="${CSS.escape(id)}"]`);
    return /** @type {HTMLElement | null} */ (row);
  }

  /**
   * @param {string} name
   * @param {any} [detail]
   */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** @param {Element} target */
function idAt(target) {
  const row = /** @type {HTMLElement | null} */ (target.closest("[data-conversation]"));
  return row?.dataset.conversation ?? "";
}

/** A selector for what has the focus in the list, to give it back after rendering. */
function focusedRow() {
  const focused = document.activeElement;
  const id = focused ? idAt(focused) : "";
  if (!id) return null;
  const inner = focused?.matches("[data-menu]") ? "[data-menu]" : "a";
  return `[data-conversation="${CSS.escape(id)}"] ${inner}`;
}

/**
 * A click that does not ask for a new tab or a menu.
 * @param {any} event
 */
function isPlain(event) {
  return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
}

customElements.define("chat-sidebar", ChatSidebar);
