// @ts-check
/**
 * <message-queue>: messages that wait above the composer until the answer before has ended. They are
 * kept with the drafts (drafts.js), so that they survive a reload and every tab shows the same.
 * Events: "take-back" {text}: to be edited in the composer, "send-now", "leave": back to the composer.
 */

import { element, find, icon } from "./dom.js";
import { gettext } from "./i18n.js";

/** @typedef {import("./drafts.js").Sent} Sent */

const HELD = {
  failed: gettext("The last answer failed. These messages wait."),
  beside: gettext("Choose one of the answers; then the next message is sent."),
};

export class MessageQueue extends HTMLElement {
  /** @type {import("./drafts.js").Drafts | null} */
  drafts = null;
  /** @type {string | null} */
  #conversation = null;
  /** @type {keyof typeof HELD | null} why the messages are not sent by themselves */
  #held = null;

  connectedCallback() {
    this.addEventListener("click", (event) => this.#clicked(event));
    this.addEventListener("keydown", (event) => this.#keyPressed(event));
    addEventListener("storage", () => this.#render()); // another tab has sent or changed one
  }

  /** @param {string | null} conversation whose messages are shown */
  open(conversation) {
    this.#conversation = conversation;
    this.#render();
  }

  /** @param {Sent} message */
  add(message) {
    this.drafts?.addQueued(this.#conversation, message);
    this.#render();
  }

  /**
   * The next message to send, which does not wait any more; null if there is none.
   * @returns {Sent | null}
   */
  take() {
    const next = this.drafts?.takeQueued(this.#conversation) ?? null;
    if (next) this.#render();
    return next;
  }

  /** @param {keyof typeof HELD | null} held */
  hold(held) {
    if (held === this.#held) return;
    this.#held = held;
    this.#render();
  }

  get isHeld() {
    return this.#held !== null;
  }

  /** Go to the last message that waits. Returns false if none does. */
  focusLast() {
    const last = this.#items.at(-1);
    last?.focus();
    return last !== undefined;
  }

  get #items() {
    return /** @type {HTMLElement[]} */ ([...this.querySelectorAll(".queue__item")]);
  }

  #render() {
    const messages = this.drafts?.of(this.#conversation).queued ?? [];
    const focused = document.activeElement?.closest(".queue__item");
    const at = focused ? this.#items.indexOf(/** @type {HTMLElement} */ (focused)) : -1;
    const items = messages.map((message) => renderItem(message));
    const list = element("ul", { class: "queue", "aria-label": gettext("Messages that are sent next") }, items);
    this.replaceChildren(...(items.length ? [list] : []));
    if (items.length && this.#held) this.append(renderHeld(HELD[this.#held], this.#held === "failed"));
    if (at >= 0) (this.#items[Math.min(at, items.length - 1)] ?? null)?.focus();
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const button = /** @type {Element} */ (event.target).closest("button");
    const id = /** @type {HTMLElement | null} */ (button?.closest("[data-queued]"))?.dataset.queued;
    if (button?.name === "edit") this.#edit(id ?? "");
    if (button?.name === "remove") this.#remove(id ?? "");
    if (button?.name === "send-now") this.dispatchEvent(new CustomEvent("send-now"));
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!target.matches(".queue__item")) return;
    const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    const id = target.dataset.queued ?? "";
    if (step) {
      const next = this.#items[this.#items.indexOf(target) + step];
      if (next) next.focus();
      else if (step > 0) this.#leave();
    } else if (event.key === "Enter") this.#edit(id);
    else if (event.key === "Delete" || event.key === "Backspace") this.#remove(id);
    else if (event.key === "Escape") this.#leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} id */
  #edit(id) {
    const message = this.drafts?.dropQueued(this.#conversation, id);
    this.#render();
    if (message) this.dispatchEvent(new CustomEvent("take-back", { detail: message }));
  }

  /** @param {string} id */
  #remove(id) {
    this.drafts?.dropQueued(this.#conversation, id);
    this.#render();
    if (!this.#items.length) this.#leave();
  }

  #leave() {
    this.dispatchEvent(new CustomEvent("leave"));
  }
}

/** @param {Sent} message */
function renderItem({ text, clientId }) {
  const attributes = { type: "button", class: "small-button" };
  const edit = element("button", { ...attributes, name: "edit", "aria-label": gettext("Edit"), title: gettext("Edit") });
  edit.append(icon("pencil"));
  const remove = element("button", {
    ...attributes, name: "remove", "aria-label": gettext("Remove"), title: gettext("Remove"),
  });
  remove.append(icon("x"));
  const words = element("span", { class: "queue__text", dir: "auto" }, [text]);
  return element("li", { class: "queue__item", tabindex: "0", "data-queued": clientId }, [
    words, edit, remove,
  ]);
}

/**
 * @param {string} words
 * @param {boolean} canSend
 */
function renderHeld(words, canSend) {
  const line = element("p", { class: "queue__held" }, [words]);
  if (canSend) {
    const now = { type: "button", class: "button", name: "send-now" };
    line.append(element("button", now, [gettext("Send now")]));
  }
  return line;
}

customElements.define("message-queue", MessageQueue);

/** @param {ParentNode} page */
export function queueOf(page) {
  return /** @type {MessageQueue} */ (find(page, "message-queue"));
}
