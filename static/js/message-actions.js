// @ts-check
/**
 * What people do with messages: edit, answer again, go on, choose a version, branch off, delete and
 * take that back. New answers are asked for over the socket, other changes of the tree over /api.
 *
 * @typedef {import("./conversation-store.js").Message} Message
 * @typedef {object} Page what the actions need of it
 * @property {import("./session.js").ChatSession} session
 * @property {import("./api.js").Api} api
 * @property {import("./message-list.js").MessageList} list
 * @property {import("./scroll.js").ScrollKeeper} scroll
 * @property {import("./toast.js").ToastRegion} toasts
 * @property {((text: string, signal: AbortSignal) => Promise<ArrayBuffer>) | null} speech by a model of the site
 * @property {() => any[]} models states of those that can be chosen
 * @property {() => string | null} model name of the one that answers next
 * @property {import("./drafts.js").Drafts} drafts
 * @property {(send: () => void) => void} withNewTurn send, and show the turn from its beginning
 * @property {(conversation: any) => void} goTo show another chat
 * @property {() => void} focusComposer
 */

import { copyText, element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";
import { Menu } from "./menu.js";
import { isCut } from "./message-bar.js";
import { textOf } from "./parts.js";
import { fullDate } from "./words.js";

export class MessageActions {
  /** The message whose menu is open. */
  #menuFor = "";
  /** The end of the change before. @type {Promise<void>} */
  #changing = Promise.resolve();
  /** What the menu does with a text: loaded as the menu opens. @type {Promise<import("./message-text.js").MessageText> | null} */
  #texts = null;
  /** @type {Promise<import("./message-changes.js").MessageChanges> | null} */
  #changes = null;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.againMenu = new Menu(find(document, "#again-menu"), (item) => this.#again(item.dataset));
    this.messageMenu = new Menu(find(document, "#message-menu"), (item) => this.#menuAct(item.dataset.menuAct ?? ""));
    page.list.addEventListener("act", (event) => this.#act(/** @type {CustomEvent} */ (event).detail));
  }

  get store() {
    return this.page.session.store;
  }

  /** @param {{act: string, id: string, button: HTMLElement}} pressed */
  #act({ act, id, button }) {
    this.#menuFor = id;
    switch (act) {
      case "edit":
        return this.edit(id);
      case "regenerate":
        this.#fillModels(id);
        return this.againMenu.open(button);
      case "more":
        find(document, "[data-menu-act=branch]").hidden = this.store.isTemporary;
        for (const act of ["remember", "schedule"]) {
          find(document, `[data-menu-act=${act}]`).hidden = this.store.isTemporary || this.store.shown(id)?.role !== "user";
        }
        find(document, "[data-menu-act=share]").hidden = this.store.isTemporary || this.store.shown(id)?.role !== "assistant";
        setText(find(document, "#message-time"), fullDate(this.store.shown(id)?.created_at ?? ""));
        this.#fillPin(id);
        this.#fillTexts(id);
        return this.messageMenu.open(button);
      case "good":
      case "bad":
        return this.#change((changes) => changes.rate(id, act));
      case "forget":
        return this.#change((changes) => changes.forget(button));
      case "again":
        return this.regenerate(id);
      case "allow":
      case "deny":
        return this.page.session.decide(id, act === "allow");
      case "confirm":
        return this.regenerate(id, { confirms: true });
      case "continue":
        return this.goOn(id);
      case "choose":
        return this.#choose(id);
      case "older":
      case "newer":
        return this.step(id, act === "older" ? -1 : 1);
    }
  }

  /**
   * What changes a message is loaded when it is first wanted.
   * @param {(changes: import("./message-changes.js").MessageChanges) => unknown} work
   */
  async #change(work) {
    this.#changes ??= import("./message-changes.js").then(({ MessageChanges }) => new MessageChanges(this));
    const changes = await this.#changes.catch(() => null);
    if (changes) return work(changes);
    this.#changes = null; // tried again the next time
    this.page.toasts.show(gettext("The server cannot be reached. Nothing was changed."));
  }

  /** @param {string} id */
  edit(id) {
    return this.#change((changes) => changes.edit(id));
  }

  /** Go on with what was being written in the place of messages. @param {boolean} [isQuiet] the focus stays where it is */
  reopen(isQuiet = false) {
    const { editing } = this.page.drafts.of(this.store.draftName);
    if (Object.keys(editing).length) this.#change((changes) => changes.reopen(editing, isQuiet));
  }

  // --- new answers -------------------------------------------------------------------------

  /**
   * @param {string} id of the answer
   * @param {{model?: string | null, wish?: string | null, without?: number[], confirms?: boolean}} [how]
   *   `confirms`: the question goes to the model although a policy asks first
   */
  regenerate(id, { model = this.page.model(), wish = null, without = [], confirms = false } = {}) {
    const retake = { answer: id, model, wish, without, confirms, clientId: newId() };
    this.page.withNewTurn(() => this.page.session.retake(retake));
  }

  /** @param {string} id */
  #fillPin(id) {
    const item = find(document, "[data-menu-act=pin]");
    item.hidden = this.store.isTemporary;
    const isPinned = this.store.shown(id)?.is_pinned;
    setText(find(item, "span"), isPinned ? gettext("No longer keep in view") : gettext("Keep in the model’s view"));
  }

  /** @param {string} act chosen in the menu of a message */
  #menuAct(act) {
    const id = this.#menuFor;
    switch (act) {
      case "branch":
      case "share":
      case "pin":
      case "remember":
        return this.#change((changes) => changes[act](id));
      case "delete":
        return this.#change((changes) => changes.remove(id));
      case "schedule":
        return location.assign(`/settings/schedules/new?message=${id}`);
      default:
        return this.#withText(id, act);
    }
  }

  /** @param {string} id */
  async #fillTexts(id) {
    const hasText = textOf(this.store.shown(id)?.parts ?? []) !== "";
    const items = /** @type {NodeListOf<HTMLElement>} */ (this.messageMenu.root.querySelectorAll("[data-of-text]"));
    const canMaybe = Boolean(this.page.speech ?? globalThis.speechSynthesis);
    for (const item of items) item.hidden = !hasText || (item.dataset.menuAct === "read" && !canMaybe);
    this.#texts ??= import("./message-text.js").then(({ MessageText }) => this.#reader(MessageText));
    this.#texts.catch(() => (this.#texts = null)); // tried again with the next menu
    const texts = await this.#texts.catch(() => null);
    if (canMaybe) find(this.messageMenu.root, "[data-menu-act=read]").hidden = !hasText || !(await texts?.canRead());
    const isRead = texts?.isReading(id);
    setText(find(this.messageMenu.root, "[data-menu-act=read] span"), isRead ? gettext("Stop reading") : gettext("Read aloud"));
  }

  /** @param {typeof import("./message-text.js").MessageText} MessageText */
  #reader(MessageText) {
    const texts = new MessageText(this.page.speech);
    texts.failed = () => this.page.toasts.show(gettext("Reading aloud broke off: the voice cannot be reached."));
    return texts;
  }

  /** Copy a text, or read it aloud. @param {string} id @param {string} act */
  async #withText(id, act) {
    await this.attempt(async () => {
      const words = await (await this.#texts)?.act(act, id, textOf(this.store.shown(id)?.parts ?? []));
      if (words) this.page.toasts.show(words);
    });
    this.focus(id, "more");
  }

  /** @param {DOMStringMap} chosen what the menu item says */
  #again({ wish, model }) {
    const before = this.store.shown(this.#menuFor);
    this.regenerate(this.#menuFor, { wish: wish ?? null, model: model ?? before?.model });
  }

  /** @param {string} id of the answer, whose model is left out */
  #fillModels(id) {
    const { model: own } = /** @type {Message} */ (this.store.shown(id));
    const others = this.page.models().filter(({ name, state }) => name !== own && state !== "failed");
    const rows = others.map(({ name, title }) =>
      element("button", {
        type: "button", class: "popover__row", role: "menuitem", "data-again": "", "data-model": name,
      }, [element("span", { class: "popover__gap" }), title]),
    );
    find(this.againMenu.root, "[data-models]").replaceChildren(...rows);
    find(this.againMenu.root, ".popover__group").hidden = !rows.length;
  }

  /** @param {string} id of the answer */
  goOn(id) {
    const retake = { answer: id, goesOn: true, clientId: newId() };
    this.around(id, () => this.page.session.retake(retake), () => this.store.leaf ?? id);
  }

  // --- versions ----------------------------------------------------------------------------

  /**
   * Show the version before or after a message, where there is one.
   * @param {string} id
   * @param {1 | -1} by
   */
  step(id, by) {
    const siblings = this.store.siblings(id);
    const at = siblings.findIndex((sibling) => sibling.id === id);
    const to = siblings[at + by];
    if (!to || this.store.beside(id).length) return false;
    this.#choose(to.id, id);
    this.focus(to.id, by < 0 ? "older" : "newer");
    return true;
  }

  /**
   * Show a message's branch here, and have the server remember it.
   * @param {string} id
   * @param {string} [from] the message in whose place it comes
   */
  async #choose(id, from = id) {
    const { session } = this.page;
    this.around(from, () => session.choose(id), () => id);
    await this.attempt(async () => session.take(this.store.isTemporary ? { conversation: null } : await this.page.api.choose(id)));
  }

  // --- by the keyboard ---------------------------------------------------------------------

  /** The message that has the focus, or a part of it. */
  get focused() {
    const root = /** @type {HTMLElement | null} */ (document.activeElement?.closest("[data-message]"));
    return root?.dataset.message ?? null;
  }

  editLast() {
    const last = this.store.path().findLast(({ role, status }) => role === "user" && status === "complete");
    if (last) this.edit(last.id);
  }

  regenerateLast() {
    const id = this.#last();
    if (id) this.regenerate(id);
  }

  continueLast() {
    const id = this.#last();
    const message = id ? this.store.shown(id) : null;
    if (message && isCut(message)) this.goOn(message.id);
  }

  /** The last answer of the branch, or that with the focus, if it has ended. */
  #last() {
    const ids = [this.focused, this.store.leaf];
    const answers = ids.map((id) => this.store.shown(id)).filter((message) => message !== null);
    const found = answers.find(({ role }) => role === "assistant");
    const hasEnded = found && !["sending", "running", "deleted"].includes(found.status);
    return hasEnded ? found.id : null;
  }

  // --- all of them -------------------------------------------------------------------------

  /**
   * Change the branch and keep the message that stands in the place of another where that was.
   * @param {string} id
   * @param {() => void} change
   * @param {() => string} nextId
   */
  around(id, change, nextId) {
    const { list, scroll } = this.page;
    let isChanged = false;
    scroll.around(() => list.rootOf(isChanged ? nextId() : id), () => {
      change();
      isChanged = true;
    });
  }

  /**
   * @param {string} id
   * @param {string} act
   */
  focus(id, act) {
    const button = this.page.list.rootOf(id)?.querySelector(`[data-act=${act}]`);
    /** @type {HTMLElement | null | undefined} */ (button)?.focus({ preventScroll: true });
  }

  /**
   * @param {() => Promise<void>} work
   * @param {string} [text] that must not be lost
   * @returns {Promise<boolean>} whether it is done
   */
  async attempt(work, text) {
    try {
      await this.inTurn(work);
      return true;
    } catch (error) {
      const { code, message } = /** @type {any} */ (error);
      const { toasts, session } = this.page;
      const copy = text && { action: gettext("Copy text"), run: () => copyText(text) };
      toasts.show(message, copy || {});
      if (code === "conflict" || code === "not_found") session.refresh();
      return false;
    }
  }

  /**
   * One after the other: each names the version of the chat that it has seen, and makes a newer one.
   * @param {() => Promise<void>} work
   */
  async inTurn(work) {
    const before = this.#changing;
    /** @type {() => void} */
    let done = () => {};
    this.#changing = new Promise((resolve) => (done = resolve));
    await before;
    try {
      await work();
    } finally {
      done();
    }
  }
}
