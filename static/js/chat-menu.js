// @ts-check
/**
 * The menus of a chat and of a folder, and what they and the bar for many chats do with chats.
 * Other modules add rows to the chat's menu in the template (`data-chat-tool`).
 */

import { Arranging } from "./arranging.js";
import { find, setText } from "./dom.js";
import { gettext, listed } from "./i18n.js";
import { placePopover } from "./popover.js";

/** @typedef {import("./library.js").Conversation} Conversation */
/** @typedef {import("./library.js").Folder} Folder */

export class ChatMenu {
  menu = find(document, "#chat-menu");
  folderMenu = find(document, "#folder-menu");
  #chat = "";
  #folder = "";

  /**
   * @param {import("./library.js").Library} library
   * @param {import("./api.js").Api} api
   * @param {{rename: (id: string) => void, choose: (id: string) => void, changed: () => unknown,
   *   take: (chats: Conversation[]) => void, deleted: (ids: string[]) => void,
   *   tell: (name: "done" | "problem", detail: any) => void}} sidebar
   */
  constructor(library, api, sidebar) {
    this.library = library;
    this.arranging = new Arranging(api);
    this.api = api;
    this.sidebar = sidebar;
    this.arranging.on("changed", sidebar.take);
    this.arranging.on("deleted", sidebar.deleted);
    this.arranging.on("done", (done) => sidebar.tell("done", done));
    this.arranging.on("problem", (words) => sidebar.tell("problem", words));
    for (const menu of [this.menu, this.folderMenu]) {
      menu.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => walk(menu, event));
    }
    this.menu.addEventListener("click", (/** @type {Event} */ event) => this.#clicked(event));
    this.folderMenu.addEventListener("click", (/** @type {Event} */ event) => {
      this.#folderClicked(event);
    });
  }

  /**
   * @param {string} id of a chat
   * @param {Element} button
   */
  open(id, button) {
    this.#chat = this.menu.dataset.conversation = id;
    const { pinned, folder } = this.library.conversations.get(id) ?? {};
    setText(find(this.menu, "[data-arrange=pin] span"), pinned ? gettext("Unpin") : gettext("Pin"));
    setText(find(this.menu, "[data-arrange=move] span"), folder ? gettext("Move…") : gettext("Move to a folder…"));
    show(this.menu, button);
  }

  /**
   * @param {string} id
   * @param {Element} button
   */
  openFolder(id, button) {
    this.#folder = id;
    show(this.folderMenu, button);
  }

  /**
   * Pin, move, tag, export, archive or delete.
   * @param {string} action
   * @param {Conversation[]} chats
   * @returns {Promise<boolean>} whether anything was changed: not where it was cancelled, nor without the server
   */
  async arrange(action, chats) {
    if (!chats.length) return false;
    const allPinned = chats.every(({ pinned }) => pinned);
    if (action === "pin") return this.arranging.pin(chats, !allPinned);
    if (action === "archive") return this.arranging.archive(chats, true);
    if (action === "delete") return this.arranging.remove(chats);
    if (action === "export") return this.#export(chats);
    return action === "move" ? this.#move(chats) : this.#tag(chats);
  }

  /** Nothing of them changes. @param {Conversation[]} chats */
  async #export(chats) {
    const { exportChosen } = await import("./export-chosen.js");
    await this.#attempt(() => exportChosen(chats));
    return false;
  }

  /** @param {Conversation[]} chats */
  async #move(chats) {
    const { askForFolder } = await import("./arrange-dialogs.js");
    const choice = await askForFolder(this.library.folders, chats);
    if (!choice) return false;
    let isDone = false;
    await this.#attempt(async () => {
      const folder = "name" in choice ? await this.#newFolder(choice.name) : choice.folder;
      isDone = await this.arranging.move(chats, folder);
    });
    return isDone;
  }

  /** @param {Conversation[]} chats */
  async #tag(chats) {
    const [{ askForTags }, known] = await Promise.all([
      import("./arrange-dialogs.js"),
      this.api.tags().catch(() => this.library.tags), // offline: those that are known here
    ]);
    const choice = await askForTags(known, chats);
    return choice ? this.arranging.tag(chats, choice.added, choice.removed) : false;
  }

  /** @param {string} name */
  async #newFolder(name) {
    const { folder } = await this.api.createFolder(name);
    this.library.folders.push(folder);
    this.library.openFolders.add(folder.id);
    return folder;
  }

  /** @param {Event} event */
  #clicked(event) {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button || button.dataset.chatTool) return;
    this.menu.hidePopover();
    const chat = this.library.conversations.get(this.#chat);
    if ("rename" in button.dataset) this.sidebar.rename(this.#chat);
    if ("choose" in button.dataset) this.sidebar.choose(this.#chat);
    if (chat && button.dataset.arrange) this.arrange(button.dataset.arrange, [chat]);
  }

  /** @param {Event} event */
  async #folderClicked(event) {
    const button = /** @type {Element} */ (event.target).closest("button");
    const folder = this.library.folders.find(({ id }) => id === this.#folder);
    if (!button || !folder) return;
    this.folderMenu.hidePopover();
    const { askForName } = await import("./arrange-dialogs.js");
    await this.#attempt(async () => {
      if ("renameFolder" in button.dataset) {
        const name = await askForName(folder.name);
        if (name) await this.api.renameFolder(folder.id, name, folder.version);
      } else if (await this.#mayDelete(folder)) await this.api.removeFolder(folder.id);
      await this.sidebar.changed();
    });
  }

  /** @param {Folder} folder */
  async #mayDelete({ name }) {
    const { confirmed } = await import("./dialog.js");
    const text = gettext("The chats in “%(folder)s” stay. They are listed by day again.", { folder: name });
    return confirmed({ title: gettext("Delete this folder?"), text, action: gettext("Delete") });
  }

  /** @param {() => Promise<void>} work */
  async #attempt(work) {
    try {
      await work();
    } catch (error) {
      this.sidebar.tell("problem", /** @type {Error} */ (error).message);
    }
  }
}

/**
 * @param {any} menu
 * @param {Element} button
 */
function show(menu, button) {
  menu.showPopover();
  placePopover(menu, button);
  find(menu, "button").focus();
}

/**
 * @param {HTMLElement} menu
 * @param {KeyboardEvent} event
 */
function walk(menu, event) {
  const rows = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("button")]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  rows.at(to % rows.length)?.focus();
}
