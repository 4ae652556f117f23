// @ts-check
/**
 * <message-list>: the visible path of a conversation, grouped in turns (a question and its answers).
 * What changes is drawn once per animation frame. Far messages of a long conversation stay the plain
 * text that the server sent until the reader comes near.
 */

import { copyText, element, find, setText } from "./dom.js";
import { MessageView } from "./message.js";
import { textOf } from "./parts.js";

/** @typedef {import("./conversation-store.js").Message} Message */

const NUM_DRAWN_AT_ONCE = 8;
const NEAR = "1500px 0px";
const COPIED_MS = 1600;

export class MessageList extends HTMLElement {
  /**
   * What the list shows of a message.
   * @type {(id: string) => import("./message.js").Shown | null}
   */
  source = () => null;

  /** @type {Map<string, MessageView>} by the key of the message */
  #views = new Map();
  /** @type {Map<string, string>} message id → key */
  #keys = new Map();
  /** @type {Set<string>} message ids */
  #dirty = new Set();
  #frame = 0;
  #nearby = new IntersectionObserver((entries) => this.#drawNear(entries), { rootMargin: NEAR });

  connectedCallback() {
    this.addEventListener("click", (event) => this.#clicked(event));
  }

  disconnectedCallback() {
    this.#nearby.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /**
   * Show the messages of a path; whose key is on the screen already keeps its place.
   * @param {Message[]} path
   */
  show(path) {
    this.#keys = new Map(path.map((message) => [message.id, message.key ?? message.id]));
    /** @type {HTMLElement[][]} */
    const turns = [];
    path.forEach((message, index) => {
      const view = this.#viewOf(message);
      if (message.role === "user" || !turns.length) turns.push([]);
      /** @type {HTMLElement[]} */ (turns.at(-1)).push(view.root);
      const isFar = index < path.length - NUM_DRAWN_AT_ONCE && !view.isDrawn;
      if (isFar) this.#sketch(view, message);
      else this.#draw(message.id);
    });
    this.#arrange(turns);
    this.#forgetGone();
  }

  /**
   * The message changed; it is drawn in the next frame.
   * @param {string} id
   */
  touch(id) {
    this.#dirty.add(id);
    this.#frame ||= requestAnimationFrame(() => this.#drawDirty());
  }

  #drawDirty() {
    this.#frame = 0;
    const ids = [...this.#dirty];
    this.#dirty.clear();
    for (const id of ids) this.#draw(id);
    this.dispatchEvent(new CustomEvent("drawn", { detail: ids }));
  }

  /**
   * How many code points of the answer are on the screen.
   * @param {string} id
   */
  numShown(id) {
    return this.#views.get(this.#keys.get(id) ?? "")?.numShown ?? 0;
  }

  /** Mark the last turn as just sent: it takes the whole height, so that it can stand at the top. */
  markFresh() {
    for (const turn of this.querySelectorAll(".turn[data-fresh]")) turn.removeAttribute("data-fresh");
    this.lastElementChild?.setAttribute("data-fresh", "");
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #drawNear(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      this.#nearby.unobserve(target);
      this.#draw(/** @type {HTMLElement} */ (target).dataset.message ?? "");
    }
  }

  /** @param {string} id */
  #draw(id) {
    const view = this.#views.get(this.#keys.get(id) ?? "");
    const shown = this.source(id);
    if (view && shown) view.update(shown);
  }

  /**
   * @param {MessageView} view
   * @param {Message} message
   */
  #sketch(view, message) {
    view.sketch(message);
    this.#nearby.observe(view.root);
  }

  /** @param {Message} message */
  #viewOf(message) {
    const key = message.key ?? message.id;
    let view = this.#views.get(key);
    if (!view) {
      const root =
        this.querySelector(`[data-message="${CSS.escape(message.id)}"]`) ??
        find(document, "#message-template").content.firstElementChild.cloneNode(true);
      this.#views.set(key, (view = new MessageView(root)));
    }
    return view;
  }

  /**
   * Put the turns in order without moving what stands right.
   * @param {HTMLElement[][]} turns
   */
  #arrange(turns) {
    turns.forEach((roots, index) => {
      const turn = turnOf(roots[0]);
      if (this.children[index] !== turn) this.insertBefore(turn, this.children[index] ?? null);
      if (!sameNodes(turn.children, roots)) turn.replaceChildren(...roots);
    });
    while (this.children.length > turns.length) this.lastElementChild?.remove();
  }

  #forgetGone() {
    const wanted = new Set(this.#keys.values());
    for (const [key, view] of this.#views) {
      if (wanted.has(key)) continue;
      this.#nearby.unobserve(view.root);
      this.#views.delete(key);
    }
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const target = /** @type {Element} */ (event.target);
    const message = /** @type {HTMLElement | null} */ (target.closest("[data-message]"));
    const id = message?.dataset.message ?? "";
    const code = target.closest("[data-copy-code]");
    if (code) this.#copyCode(code);
    const copy = target.closest("[data-copy]");
    if (copy) this.#copyMessage(id, copy);
    if (target.closest("[data-retry]")) {
      this.dispatchEvent(new CustomEvent("retry", { detail: id }));
    }
  }

  /**
   * Copies the code that is seen, without hidden direction marks.
   * @param {Element} button
   */
  async #copyCode(button) {
    const frame = /** @type {Element} */ (button.closest(".code"));
    await copyText(find(frame, "code").textContent);
    const words = find(button, "span");
    setText(words, "Copied");
    setTimeout(() => setText(words, "Copy"), COPIED_MS);
  }

  /**
   * @param {string} id
   * @param {Element} button
   */
  async #copyMessage(id, button) {
    const shown = this.source(id);
    if (!shown) return;
    await copyText(textOf(shown.message.parts));
    const use = find(button, "use");
    use.setAttribute("href", "#icon-check");
    setTimeout(() => use.setAttribute("href", "#icon-copy"), COPIED_MS);
    this.dispatchEvent(new CustomEvent("copied"));
  }
}

/**
 * The turn that a question opens: the one it stands in, or a new one.
 * @param {HTMLElement} question
 */
function turnOf(question) {
  const turn = question.parentElement;
  if (turn?.matches(".turn") && turn.firstElementChild === question) return turn;
  return element("section", { class: "turn" });
}

/**
 * @param {HTMLCollection} present
 * @param {HTMLElement[]} wanted
 */
function sameNodes(present, wanted) {
  return present.length === wanted.length && wanted.every((node, index) => present[index] === node);
}

customElements.define("message-list", MessageList);
