// @ts-check
/** The rows of the sidebar: headings, folders, chats. Made anew only when what they show differs. */

import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";

/** @typedef {import("./library.js").Conversation} Conversation */
/** @typedef {import("./library.js").Section} Section */
/**
 * @typedef {{isCurrent: boolean, isChoosing: boolean, isChosen: boolean,
 *   warmth: {state: string, words: string} | null}} Look
 */

export class Rows {
  /** @type {Map<string, {sign: string, node: HTMLElement}>} */
  #made = new Map();
  /** @type {Map<string, {sign: string, node: HTMLElement}>} */
  #wanted = new Map();

  /** Put what was asked for since the last time into the list, moving only what stands elsewhere. */
  show(/** @type {HTMLElement} */ list) {
    this.#made = this.#wanted;
    this.#wanted = new Map();
    let at = list.firstElementChild;
    for (const { node } of this.#made.values()) {
      if (node === at) at = at.nextElementSibling;
      else list.insertBefore(node, at);
    }
    while (at) {
      const next = at.nextElementSibling;
      at.remove();
      at = next;
    }
  }

  /** @param {string} title */
  heading(title) {
    this.#row(`heading:${title}`, "", () => element("li", { class: "sidebar__group" }, [title]));
  }

  /** @param {string} text */
  empty(text) {
    this.#row("empty", text, () => element("li", { class: "sidebar__empty" }, [text]));
  }

  /** @param {Section} section of a folder */
  folder({ folder, title, isOpen }) {
    const id = folder?.id ?? "";
    this.#row(`folder:${id}`, `${title}\n${isOpen}`, () => folderRow(id, title, isOpen));
  }

  /** @param {string} folder */
  more(folder) {
    this.#row(`more:${folder}`, "", () => {
      const button = element("button", { type: "button", "data-more": folder }, [gettext("Show more")]);
      return element("li", { class: "chat-link chat-link--inside" }, [button]);
    });
  }

  /**
   * @param {Conversation} chat
   * @param {Look} look
   * @param {boolean} isInside a folder
   */
  chat(chat, look, isInside) {
    const { id, title, running, pinned, unread } = chat;
    const sign = JSON.stringify([title, running?.length > 0, pinned, unread, look, isInside]);
    this.#row(`chat:${id}`, sign, () => chatRow(chat, look, isInside));
  }

  /**
   * @param {string} key
   * @param {string} sign what it shows
   * @param {() => HTMLElement} make
   */
  #row(key, sign, make) {
    const made = this.#made.get(key);
    this.#wanted.set(key, made?.sign === sign ? made : { sign, node: make() });
  }

  /** Make everything anew the next time: somebody has changed a row. */
  forget() {
    this.#made.clear();
  }
}

/**
 * @param {string} id
 * @param {string} title
 * @param {boolean} isOpen
 */
function folderRow(id, title, isOpen) {
  const name = element("span", { dir: "auto" }, [title]);
  const toggle = { type: "button", class: "folder__name", "aria-expanded": String(isOpen) };
  const menu = { type: "button", class: "icon-button chat-link__menu", "data-folder-menu": "", "aria-haspopup": "menu" };
  return element("li", { class: "chat-link folder", "data-folder": id }, [
    element("button", { ...toggle, "data-toggle-folder": "" }, [
      icon("chevron-right"), icon(isOpen ? "folder-open" : "folder"), name,
    ]),
    element("button", { ...menu, "aria-label": gettext("More for the folder %(title)s", { title }), title: gettext("More") }, [
      icon("ellipsis"),
    ]),
  ]);
}

/**
 * @param {Conversation} chat
 * @param {Look} look
 * @param {boolean} isInside
 */
function chatRow({ id, url, title, running, unread }, look, isInside) {
  const { isCurrent, isChoosing, isChosen, warmth } = look;
  const name = title || gettext("New chat");
  const link = element("a", { href: url, dir: "auto", title }, [name]);
  const inside = isInside ? " chat-link--inside" : "";
  const row = element("li", { class: `chat-link${inside}`, "data-conversation": id });
  if (isCurrent) link.setAttribute("aria-current", "page");
  if (running?.length) {
    row.dataset.running = "";
    link.append(element("span", { class: "visually-hidden" }, [gettext(" (answering now)")]));
  }
  if (unread && !running?.length) {
    row.dataset.unread = "";
    link.append(element("span", { class: "visually-hidden" }, [gettext(" (not read yet)")]));
  }
  if (warmth) link.append(warmMark(warmth));
  if (isChosen) row.dataset.chosen = "";
  if (isChoosing) row.append(checkbox(name, isChosen), link);
  else row.append(link, menuButton(name));
  return row;
}

/** @param {{state: string, words: string}} warmth */
function warmMark({ state, words }) {
  return element("span", { class: "warm-mark", "data-warmth": state, title: words }, [
    element("span", { class: "visually-hidden" }, [state === "warm" ? gettext(" (warm)") : gettext(" (cold)")]),
  ]);
}

/**
 * @param {string} name
 * @param {boolean} isChosen
 */
function checkbox(name, isChosen) {
  const attributes = { type: "checkbox", "aria-label": gettext("Choose %(title)s", { title: name }), "data-choose": "" };
  const box = /** @type {HTMLInputElement} */ (element("input", attributes));
  box.checked = isChosen;
  return box;
}

/** @param {string} name */
function menuButton(name) {
  const menu = { type: "button", class: "icon-button chat-link__menu", "aria-label": gettext("More for %(title)s", { title: name }) };
  return element("button", { ...menu, "data-menu": "", "aria-haspopup": "menu", title: gettext("More") }, [icon("ellipsis")]);
}
