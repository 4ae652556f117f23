// @ts-check
/**
 * <chat-sidebar>: the chats, pinned, in folders and by day; one is opened, many are chosen.
 * Events: "open" conversation, "new", "search", "deleted" id, "answered" conversation,
 * "problem" message, "done" {text, undo}.
 */

import { confirmed } from "./dialog.js";
import { find, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";
import { Library } from "./library.js";
import { preference, remember } from "./preferences.js";
import { renameIn } from "./rename.js";
import { Selection } from "./selection.js";
import { closeSheet, listenForSidebar } from "./sidebar-panel.js";
import { Rows } from "./sidebar-rows.js";
import { warmthOf } from "./warmth.js";

/** @typedef {import("./library.js").Conversation} Conversation */

const NEAR_END_PX = 400;
const MAX_READ_AGAIN = 10; // pages

export class ChatSidebar extends HTMLElement {
  /** @type {HTMLElement} */
  list = find(this, ".chat-links");
  library = new Library(preference("folders")?.split(" ").filter(Boolean));
  selection = new Selection();

  #rows = new Rows();
  #bar = find(this, ".bulk");
  #api = /** @type {import("./api.js").Api} */ (/** @type {unknown} */ (null));
  /** @type {Promise<import("./chat-menu.js").ChatMenu> | null} */
  #menu = null;
  #current = "";
  /** @type {Record<string, {tokens: number, cached: number}>} */
  #warmth = {};
  #isLoading = false;
  /** Where the page behind could not be read. */
  #failed = "";
  #isRenaming = false;
  /** @type {Map<string, Conversation | null>} what was heard since `refresh`; null: it is deleted */
  #heard = new Map();

  connectedCallback() {
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.list.addEventListener("dblclick", (event) => this.#doubleClicked(event));
    find(this, ".sidebar__list").addEventListener("scroll", () => {
      this.#failed = "";
      this.#loadMoreNearEnd();
    });
    this.#bar.addEventListener("click", (/** @type {Event} */ event) => this.#barClicked(event));
    this.addEventListener("keydown", (event) => this.#keyPressed(event));
    document.addEventListener("click", (event) => this.#clickedAnywhere(event));
    listenForSidebar();
  }

  /** @param {import("./api.js").Api} api before anything else */
  set api(api) {
    this.#api = api;
  }

  /** @param {Parameters<Library["load"]>[0]} sidebar what GET /api/sidebar says */
  show(sidebar) {
    this.library.load(sidebar);
    this.#render();
    this.#readFolders();
  }

  /**
   * Read the lists again, as far as they were read. Returns the chats that were read, none if another
   * reading has begun since.
   * @returns {Promise<Conversation[]>}
   */
  async refresh() {
    const heard = (this.#heard = new Map());
    /** @type {Conversation[]} */
    let read = [];
    await this.#attempt(async () => {
      const sidebar = await this.#readAgain();
      if (heard !== this.#heard) return;
      this.show(sidebar);
      read = [...sidebar.pinned, ...sidebar.items].filter(({ id }) => !heard.has(id));
      // What came over the socket meanwhile is newer than what was read.
      for (const [id, chat] of heard) {
        if (chat) this.library.conversations.set(id, chat);
        else this.library.conversations.delete(id);
      }
      this.#render();
    });
    return read;
  }

  async #readAgain() {
    const sidebar = { ...(await this.#api.sidebar()), numPages: 1 };
    while (sidebar.next && sidebar.numPages < Math.min(this.library.numPages, MAX_READ_AGAIN)) {
      const { items, next } = await this.#pageBehind(sidebar.next);
      sidebar.items.push(...items);
      sidebar.next = next;
      sidebar.numPages += 1;
    }
    return sidebar;
  }

  /** @param {string} cursor */
  #pageBehind(cursor) {
    return this.#api.conversations({ cursor, folder: "none", pinned: false, archived: false });
  }

  /** @param {Conversation} chat new or changed */
  update(chat) {
    const before = this.library.conversations.get(chat.id);
    this.#take([chat]);
    const hasEnded = before?.running?.length && !chat.running?.length;
    if (hasEnded && chat.id !== this.#current) this.#tell("answered", chat);
  }

  /** @param {string} id */
  forget(id) {
    this.#heard.set(id, null);
    this.selection.drop(id);
    if (this.library.conversations.delete(id)) this.#render();
  }

  /** @param {Record<string, {tokens: number, cached: number}>} warmth by conversation */
  setWarmth(warmth) {
    if (JSON.stringify(warmth) === JSON.stringify(this.#warmth)) return;
    this.#warmth = warmth;
    this.#render();
  }

  /** @param {string | null} id the conversation that is shown */
  setCurrent(id) {
    this.#current = id ?? "";
    this.#render();
  }

  /**
   * The menu of a chat, also of one that is not listed.
   * @param {Conversation} chat
   * @param {HTMLElement} opener
   */
  openMenu(chat, opener) {
    return this.#withMenu((menus) => menus.open(this.library.conversations.get(chat.id) ?? chat, opener));
  }

  /** @param {string} id */
  async askToDelete(id) {
    const chat = this.library.conversations.get(id) ?? (await this.#api.conversation(id)).conversation;
    const title = chat.title || gettext("New chat");
    const question = {
      title: gettext("Delete this chat?"),
      text: gettext("“%(title)s” and all its messages will be deleted. You can undo it for some seconds.", { title }),
      action: gettext("Delete"),
    };
    if (await confirmed(question)) await this.#withMenu((menu) => menu.arrange("delete", [chat]));
  }

  // --- what is seen ------------------------------------------------------------------------

  /** @param {Conversation[]} chats */
  #take(chats) {
    for (const chat of chats) {
      this.#heard.set(chat.id, chat);
      this.library.conversations.set(chat.id, chat);
    }
    this.#render();
  }

  #render() {
    if (this.#isRenaming) return; // not under somebody's hands
    const sections = this.library.sections();
    const hasFolders = this.library.folders.length > 0;
    for (const { kind, title, folder, isOpen, chats, hasMore } of sections) {
      if (kind !== "folder") this.#rows.heading(title);
      else if (folder === this.library.folders[0]) this.#rows.heading(gettext("Folders"));
      if (folder) this.#rows.folder({ kind, title, folder, isOpen, chats, hasMore });
      if (!isOpen) continue;
      for (const chat of chats) this.#rows.chat(chat, this.#lookOf(chat.id), kind === "folder");
      if (folder && hasMore) this.#rows.more(folder.id);
    }
    if (!sections.length || (hasFolders && !this.library.conversations.size)) {
      this.#rows.empty(gettext("Your chats will be listed here."));
    }
    const focused = focusedRow();
    this.#rows.show(this.list);
    if (focused && !this.list.contains(document.activeElement)) {
      /** @type {any} */ (this.list.querySelector(focused))?.focus();
    }
    this.#showBar();
    this.#loadMoreNearEnd();
  }

  /** @param {string} id */
  #lookOf(id) {
    return {
      isCurrent: id === this.#current,
      isChoosing: this.selection.isOn,
      isChosen: this.selection.chosen.has(id),
      warmth: warmthOf(this.#warmth[id]),
    };
  }

  #showBar() {
    this.#bar.hidden = !this.selection.isOn;
    const { size } = this.selection;
    setText(find(this.#bar, "[data-count]"), ngettext("1 chat chosen", "%(n)s chats chosen", size));
    for (const button of this.#bar.querySelectorAll("[data-arrange]")) button.disabled = !size;
  }

  /**
   * The menus, and what they do with chats, are loaded when they are first wanted.
   * @param {(menu: import("./chat-menu.js").ChatMenu) => unknown} work
   */
  async #withMenu(work) {
    const menu = (this.#menu ??= import("./chat-menu.js").then(({ ChatMenu }) => new ChatMenu(this.library, this.#api, {
      rename: (id) => this.#rename(id),
      saveTitle: (chat, title) => this.#saveTitle(chat, title),
      choose: (id) => this.#choose(() => this.selection.toggle(id)),
      changed: () => this.refresh(),
      take: (chats) => this.#take(chats),
      deleted: (ids) => {
        for (const id of ids) this.forget(id);
        for (const id of ids) this.#tell("deleted", id);
      },
      tell: (name, detail) => this.#tell(name, detail),
    })));
    menu.catch(() => (this.#menu = null)); // tried again the next time
    await this.#attempt(async () => void (await work(await menu)));
  }

  // --- choosing ----------------------------------------------------------------------------

  /** @param {() => void} change */
  #choose(change) {
    change();
    this.#render();
  }

  /** @param {Event} event */
  async #barClicked(event) {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button) return;
    if ("cancel" in button.dataset) this.#choose(() => this.selection.clear());
    if ("all" in button.dataset) this.#choose(() => this.selection.all(this.library.visible));
    if (!button.dataset.arrange) return;
    const chosen = this.library.visible.filter((id) => this.selection.chosen.has(id));
    const chats = chosen.flatMap((id) => this.library.conversations.get(id) ?? []);
    const { arrange } = button.dataset;
    await this.#withMenu(async (menu) => {
      if (await menu.arrange(arrange, chats)) this.#choose(() => this.selection.clear());
    });
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (event.key !== "Escape" || !this.selection.isOn || document.querySelector(":popover-open")) return;
    event.preventDefault();
    event.stopPropagation();
    this.#choose(() => this.selection.clear());
  }

  // --- clicks ------------------------------------------------------------------------------

  /** @param {MouseEvent} event */
  #clicked(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const id = idAt(target);
    const folder = /** @type {HTMLElement | null} */ (target.closest("[data-folder]"));
    const menu = /** @type {HTMLElement | null} */ (target.closest("[data-menu], [data-folder-menu]"));
    const chat = this.library.conversations.get(id);
    if (menu && chat) this.openMenu(chat, menu);
    else if (menu && folder) this.#withMenu((menus) => menus.openFolder(folder.dataset.folder ?? "", menu));
    else if (target.closest("[data-toggle-folder]")) this.#toggleFolder(folder?.dataset.folder ?? "");
    else if (target.closest("[data-more]")) this.#loadMoreOf(target.dataset.more ?? "");
    else if (id) this.#chatClicked(event, id, target);
  }

  /**
   * @param {MouseEvent} event
   * @param {string} id
   * @param {Element} target
   */
  #chatClicked(event, id, target) {
    const isRange = event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isRange) {
      event.preventDefault();
      getSelection()?.removeAllRanges();
      const order = this.library.visible;
      this.#choose(() => this.selection.extend(id, order, this.#current || id));
    } else if (target.closest("[data-choose]")) {
      this.#choose(() => this.selection.toggle(id));
    } else if (target.closest("a") && isPlain(event)) {
      event.preventDefault();
      if (this.selection.isOn) return this.#choose(() => this.selection.toggle(id));
      closeSheet();
      if (id !== this.#current) this.#tell("open", this.library.conversations.get(id));
    }
  }

  /** @param {Event} event */
  #doubleClicked(event) {
    const target = /** @type {Element} */ (event.target);
    if (!target.closest("a") || this.selection.isOn) return;
    event.preventDefault();
    this.#rename(idAt(target));
  }

  /** @param {MouseEvent} event */
  #clickedAnywhere(event) {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("[data-search]")) {
      closeSheet();
      this.#tell("search");
    }
    if (!target.closest("[data-new-chat]") || !isPlain(event)) return;
    event.preventDefault();
    closeSheet();
    this.#tell("new");
  }

  // --- titles ------------------------------------------------------------------------------

  /** @param {string} id */
  async #rename(id) {
    const chat = this.library.conversations.get(id);
    const row = this.#rowOf(id);
    if (!chat || !row) return;
    this.#isRenaming = true;
    const title = await renameIn(row, chat.title);
    this.#isRenaming = false;
    this.#rows.forget();
    if (title) this.#saveTitle(chat, title);
    else this.#render();
    /** @type {any} */ (this.#rowOf(id)?.querySelector("a"))?.focus();
  }

  /**
   * @param {Conversation} chat
   * @param {string} title
   */
  async #saveTitle(chat, title) {
    this.#take([{ ...chat, title }]);
    await this.#attempt(
      async () => {
        const saved = await this.#api.rename(chat.id, title, chat.version);
        this.#take([saved.conversation]);
      },
      () => this.#take([chat]),
    );
  }

  // --- pages -------------------------------------------------------------------------------

  /** @param {string} id */
  #toggleFolder(id) {
    this.library.toggleFolder(id);
    remember("folders", [...this.library.openFolders].join(" "));
    this.#render();
    this.#readFolders();
  }

  async #readFolders() {
    for (const { id } of this.library.unreadFolders) {
      this.library.folderNext.set(id, null); // once
      await this.#loadMoreOf(id);
    }
  }

  /** @param {string} folder */
  async #loadMoreOf(folder) {
    const cursor = this.library.folderNext.get(folder) ?? null;
    await this.#attempt(async () => {
      const { items, next } = await this.#api.conversations({ cursor, folder, pinned: false, archived: false });
      this.library.addPage(items, next, folder);
      this.#render();
    });
  }

  /** Also where nobody scrolls: on a high screen, and once most of a page was deleted. */
  async #loadMoreNearEnd() {
    const { next: cursor } = this.library;
    if (cursor === null || cursor === this.#failed || this.#isLoading || !this.#isNearEnd()) return;
    this.#isLoading = true;
    this.#failed = cursor; // whoever scrolls or reads anew tries again
    await this.#attempt(async () => {
      const { items, next } = await this.#pageBehind(cursor);
      this.#failed = "";
      if (this.library.next === cursor) this.library.addPage(items, next);
    });
    this.#isLoading = false;
    if (this.library.next !== cursor) this.#render();
  }

  #isNearEnd() {
    const { scrollHeight, scrollTop, clientHeight } = find(this, ".sidebar__list");
    return clientHeight > 0 && scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
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
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  const folder = focused?.closest(".folder")?.getAttribute("data-folder");
  if (folder) return `[data-folder="${CSS.escape(folder)}"] .folder__name`;
  const id = focused ? idAt(focused) : "";
  if (!id) return null;
  const inner = ["[data-menu]", "[data-choose]"].find((selector) => focused?.matches(selector)) ?? "a";
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
