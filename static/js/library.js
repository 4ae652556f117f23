// @ts-check
/**
 * The chats that this tab knows, and where each is listed: pinned, in a folder, or under its day.
 * Pure state: no DOM, no server.
 *
 * @typedef {import("./conversation-store.js").Conversation} Conversation
 * @typedef {{id: string, name: string, version: number}} Folder
 * @typedef {object} Section
 * @property {"pinned" | "folder" | "day"} kind
 * @property {string} title
 * @property {Folder} [folder]
 * @property {boolean} isOpen
 * @property {Conversation[]} chats newest first
 * @property {boolean} hasMore of a folder: there are more than are known
 */

import { gettext } from "./i18n.js";
import { dayGroup } from "./words.js";

export class Library {
  /** @type {Map<string, Conversation>} */
  conversations = new Map();
  /** @type {Folder[]} by name */
  folders = [];
  /** @type {string | null} the cursor of the page behind the loose chats; null: there is none */
  next = null;
  /** Pages of loose chats that were read. */
  numPages = 1;
  /** @type {Map<string, string | null>} folder → the cursor of the page behind what was read of it */
  folderNext = new Map();
  /** @type {Set<string>} */
  openFolders;

  /** @param {string[]} [openFolders] ids */
  constructor(openFolders = []) {
    this.openFolders = new Set(openFolders);
  }

  /**
   * Begin anew with what the server says.
   * @param {{pinned: Conversation[], folders: Folder[], items: Conversation[], next: string | null,
   *   numPages?: number}} sidebar
   */
  load({ pinned, folders, items, next, numPages = 1 }) {
    this.conversations = new Map([...pinned, ...items].map((chat) => [chat.id, chat]));
    this.folders = folders;
    this.folderNext.clear();
    this.next = next;
    this.numPages = numPages;
  }

  /**
   * @param {Conversation[]} chats
   * @param {string | null} next
   * @param {string} [folder] of which they are a page; without one, of the loose chats
   */
  addPage(chats, next, folder) {
    for (const chat of chats) this.conversations.set(chat.id, chat);
    if (folder) this.folderNext.set(folder, next);
    else {
      this.next = next;
      this.numPages += 1;
    }
  }

  /** Open folders of which nothing has been read. */
  get unreadFolders() {
    const isUnread = (/** @type {Folder} */ { id }) => !this.folderNext.has(id);
    return this.folders.filter(({ id }) => this.openFolders.has(id)).filter(isUnread);
  }

  /**
   * @param {string} id of a folder
   * @returns {boolean} whether it is open now
   */
  toggleFolder(id) {
    if (!this.openFolders.delete(id)) this.openFolders.add(id);
    return this.openFolders.has(id);
  }

  /**
   * Everything that is listed, in order.
   * @param {Date} [now]
   * @returns {Section[]}
   */
  sections(now = new Date()) {
    const listed = [...this.conversations.values()].filter(({ archived }) => !archived);
    listed.sort((a, b) => b.updated_at.localeCompare(a.updated_at) || b.id.localeCompare(a.id));
    const pinned = listed.filter((chat) => chat.pinned);
    const known = new Set(this.folders.map(({ id }) => id));
    const folderOf = (/** @type {Conversation} */ chat) =>
      chat.folder && known.has(chat.folder) ? chat.folder : "";
    const unpinned = Map.groupBy(listed.filter((chat) => !chat.pinned), folderOf);
    /** @type {Section[]} */
    const sections = [];
    const whole = { isOpen: true, hasMore: false };
    if (pinned.length) sections.push({ kind: "pinned", title: gettext("Pinned"), chats: pinned, ...whole });
    for (const folder of this.folders) {
      const isOpen = this.openFolders.has(folder.id);
      const hasMore = Boolean(this.folderNext.get(folder.id));
      const chats = unpinned.get(folder.id) ?? [];
      sections.push({ kind: "folder", title: folder.name, folder, isOpen, chats, hasMore });
    }
    const days = Map.groupBy(unpinned.get("") ?? [], (chat) => dayGroup(chat.updated_at, now));
    for (const [title, chats] of days) sections.push({ kind: "day", title, chats, ...whole });
    return sections;
  }

  /** The ids of the chats that can be seen, in order. */
  get visible() {
    const open = this.sections().filter(({ isOpen }) => isOpen);
    return open.flatMap(({ chats }) => chats.map(({ id }) => id));
  }

  /** Tags of known chats, by name. */
  get tags() {
    const all = [...this.conversations.values()].flatMap(({ tags }) => tags ?? []);
    return [...new Set(all)].sort();
  }
}
