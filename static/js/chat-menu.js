// @ts-check
/**
 * The menus of a chat and of a folder, and what they and the bar for many chats do with chats.
 * Other modules add rows to the chat's menu in the template (`data-chat-tool`).
 */

import { Arranging } from "./arranging.js";
import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { Menu } from "./menu.js";

/** @typedef {import("./library.js").Conversation} Conversation */
/** @typedef {import("./library.js").Folder} Folder */

const MAX_TITLE_CHARS = 200;
const MAX_FOLDER_CHARS = 80;

export class ChatMenu {
  menu = new Menu(find(document, "#chat-menu"), ({ dataset }) => this.#chosen(dataset));
  folderMenu = new Menu(find(document, "#folder-menu"), ({ dataset }) => this.#chosenOfFolder(dataset));
  /** @type {Conversation | null} */
  #chat = null;
  /** It was opened at a row of the list, and not in the bar of the chat. */
  #isInList = true;
  #folder = "";

  /**
   * @param {import("./library.js").Library} library
   * @param {import("./api.js").Api} api
   * @param {{rename: (id: string) => void, saveTitle: (chat: Conversation, title: string) => unknown,
   *   choose: (id: string) => void, changed: () => unknown, take: (chats: Conversation[]) => void, deleted: (ids: string[]) => void,
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
  }

  /**
   * @param {Conversation} chat
   * @param {HTMLElement} button
   */
  open(chat, button) {
    const { root } = this.menu;
    this.#chat = chat;
    this.#isInList = button.closest("chat-sidebar") !== null;
    root.dataset.conversation = chat.id;
    setText(find(root, "[data-arrange=pin] span"), chat.pinned ? gettext("Unpin") : gettext("Pin"));
    setText(find(root, "[data-arrange=move] span"), chat.folder ? gettext("Move…") : gettext("Move to a folder…"));
    setText(find(root, "[data-arrange=unread] span"), chat.unread ? gettext("Mark as read") : gettext("Mark as unread"));
    // What is shown is read: to say otherwise would hold for a moment.
    find(root, "[data-arrange=unread]").hidden = !this.#isInList || button.closest("li")?.querySelector("[aria-current]") !== null;
    find(root, "[data-choose]").hidden = !this.#isInList;
    this.menu.open(button);
  }

  /**
   * @param {string} id
   * @param {HTMLElement} button
   */
  openFolder(id, button) {
    this.#folder = id;
    this.folderMenu.open(button);
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
    if (action === "unread") return this.arranging.markUnread(chats, !chats.every(({ unread }) => unread));
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

  /** @param {DOMStringMap} item what else may be asked for is asked for elsewhere (`data-chat-tool`) */
  #chosen(item) {
    const opened = this.#chat;
    if (!opened) return;
    const chat = this.library.conversations.get(opened.id) ?? opened;
    if ("rename" in item) this.#isInList ? this.sidebar.rename(chat.id) : this.#rename(chat);
    if ("choose" in item) this.sidebar.choose(chat.id);
    if (item.arrange) this.arrange(item.arrange, [chat]);
  }

  /** Where no row of the list can be typed in. @param {Conversation} chat */
  async #rename(chat) {
    const { askForName } = await import("./arrange-dialogs.js");
    const title = await askForName(chat.title, gettext("Rename this chat"), MAX_TITLE_CHARS);
    if (title) await this.sidebar.saveTitle(chat, title);
  }

  /** @param {DOMStringMap} item */
  async #chosenOfFolder(item) {
    const folder = this.library.folders.find(({ id }) => id === this.#folder);
    if (!folder) return;
    const { askForName } = await import("./arrange-dialogs.js");
    await this.#attempt(async () => {
      if ("renameFolder" in item) {
        const name = await askForName(folder.name, gettext("Folder"), MAX_FOLDER_CHARS);
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
