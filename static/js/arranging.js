// @ts-check
/**
 * What can be done with one chat or many: pin, move, tag, archive, delete, each with a way back, which throws
 * where the server cannot be reached, and can be tried again.
 * Events: "changed" conversations, "deleted" ids, "done" {text, undo}, "problem" message.
 *
 * @typedef {import("./conversation-store.js").Conversation} Conversation
 * @typedef {{folder?: string | null, tags?: string[], pinned?: boolean, archived?: boolean,
 *   unread?: boolean, deleted?: boolean}} Values
 */

import { Emitter } from "./emitter.js";
import { ngettext } from "./i18n.js";

const AT_ONCE = 500; // as the server has it

export class Arranging extends Emitter {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    super();
    this.api = api;
  }

  /**
   * @param {Conversation[]} chats
   * @param {boolean} pinned
   */
  pin(chats, pinned) {
    return this.#arrange(chats, () => ({ pinned }), pinned ? pinnedWords : unpinnedWords);
  }

  /**
   * @param {Conversation[]} chats
   * @param {boolean} archived
   */
  archive(chats, archived) {
    return this.#arrange(chats, () => ({ archived }), archived ? archivedWords : unarchivedWords);
  }

  /**
   * @param {Conversation[]} chats
   * @param {boolean} unread
   */
  markUnread(chats, unread) {
    return this.#arrange(chats, () => ({ unread }), unread ? unreadWords : readWords);
  }

  /**
   * @param {Conversation[]} chats
   * @param {{id: string, name: string} | null} folder
   */
  move(chats, folder) {
    const words = (/** @type {number} */ n) =>
      folder
        ? ngettext("The chat is moved to %(folder)s.", "%(n)s chats are moved to %(folder)s.", n, { folder: folder.name })
        : ngettext("The chat is in no folder now.", "%(n)s chats are in no folder now.", n);
    return this.#arrange(chats, () => ({ folder: folder?.id ?? null }), words);
  }

  /**
   * @param {Conversation[]} chats
   * @param {string[]} added
   * @param {string[]} removed
   */
  tag(chats, added, removed) {
    const valuesOf = (/** @type {Conversation} */ { tags = [] }) => ({
      tags: [...new Set([...tags.filter((tag) => !removed.includes(tag)), ...added])],
    });
    return this.#arrange(chats, valuesOf, taggedWords);
  }

  /** @param {Conversation[]} chats */
  remove(chats) {
    return this.#arrange(chats, () => ({ deleted: true }), deletedWords);
  }

  /**
   * @param {Conversation[]} chats
   * @param {(chat: Conversation) => Values} valuesOf
   * @param {(numChats: number) => string} words what has become of them
   * @returns {Promise<boolean>} whether any of them was changed
   */
  async #arrange(chats, valuesOf, words) {
    const asked = chats.map((chat) => {
      const values = valuesOf(chat);
      const before = Object.fromEntries(
        Object.keys(values).map((name) => [name, formerly(chat, name)]),
      );
      // Tags overwrite each other; a pin or a folder is what was chosen last.
      const version = "tags" in values ? { version: chat.version } : {};
      return { id: chat.id, before, change: { id: chat.id, ...values, ...version } };
    });
    /** @type {Set<string>} */
    const done = new Set();
    try {
      await this.#send(asked.map(({ change }) => change), done);
    } catch (error) {
      this.emit("problem", /** @type {Error} */ (error).message);
    }
    const undone = asked.filter(({ id }) => done.has(id)).map(({ id, before }) => ({ id, ...before }));
    if (!undone.length) return false;
    /** @type {Set<string>} */
    const back = new Set();
    const undo = () => this.#send(undone.filter(({ id }) => !back.has(id)), back);
    this.emit("done", { text: words(undone.length), undo });
    return true;
  }

  /**
   * Throws where the server cannot be reached.
   * @param {({id: string} & Values)[]} changes
   * @param {Set<string>} done to which the ids are added of the chats that were changed
   */
  async #send(changes, done) {
    for (let at = 0; at < changes.length; at += AT_ONCE) {
      const answer = await this.api.arrange(changes.slice(at, at + AT_ONCE));
      const { conversations, deleted, refused } = answer;
      for (const { id } of conversations) done.add(id);
      for (const id of deleted) done.add(id);
      if (conversations.length) this.emit("changed", conversations);
      if (deleted.length) this.emit("deleted", deleted);
      if (refused.length) this.emit("problem", problemOf(refused));
    }
    return done;
  }
}

/**
 * @param {any} chat
 * @param {string} name
 */
function formerly(chat, name) {
  if (name === "deleted") return false;
  return chat[name] ?? (name === "tags" ? [] : null);
}

/** @param {number} n */
const pinnedWords = (n) => ngettext("The chat is pinned.", "%(n)s chats are pinned.", n);
/** @param {number} n */
const unpinnedWords = (n) => ngettext("The chat is no longer pinned.", "%(n)s chats are no longer pinned.", n);
/** @param {number} n */
const archivedWords = (n) => ngettext("The chat is archived.", "%(n)s chats are archived.", n);
/** @param {number} n */
const unarchivedWords = (n) => ngettext("The chat is back in the list.", "%(n)s chats are back in the list.", n);
/** @param {number} n */
const unreadWords = (n) => ngettext("The chat is marked as unread.", "%(n)s chats are marked as unread.", n);
/** @param {number} n */
const readWords = (n) => ngettext("The chat is marked as read.", "%(n)s chats are marked as read.", n);
/** @param {number} n */
const taggedWords = (n) => ngettext("The chat is tagged.", "%(n)s chats are tagged.", n);
/** @param {number} n */
const deletedWords = (n) => ngettext("The chat is deleted.", "%(n)s chats are deleted.", n);

/** @param {{message: string}[]} refused */
function problemOf(refused) {
  const [{ message }] = refused;
  return refused.length === 1 ? message : `${ngettext("%(n)s chat stays as it was.", "%(n)s chats stay as they were.", refused.length)} ${message}`;
}
