// @ts-check
/**
 * <message-list>: the shown branch of a conversation, grouped in turns (a question and its answers).
 * What changes is drawn once per animation frame. Far messages of a long conversation stay the plain
 * text that the server sent until the reader comes near.
 * Events: "drawn" ids, "copied", "problem" message, "act" {act, id, button}: a button of a message
 * was pressed.
 */

import { copyText, element, find } from "./dom.js";
import { MessageView, sketchRoot } from "./message.js";
import { textOf } from "./parts.js";

/**
 * What the buttons of blocks do is fetched as somebody reaches for one: a browser copies only what is asked for
 * just before.
 * @param {(actions: typeof import("./block-actions.js")) => void} [work]
 */
function onBlocks(work) {
  import("./block-actions.js").then(work, () => {}); // offline: the next click tries again
}

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
  /**
   * Answers that stand side by side with a message, itself among them; none if it stands alone.
   * @type {(id: string) => Message[]}
   */
  besideOf = () => [];

  /** @type {Map<string, MessageView>} by the key of the message */
  #views = new Map();
  /** @type {Map<string, HTMLElement>} what the server has drawn, by message id, until it is taken over */
  #painted = new Map();
  /** @type {Map<string, string>} message id → key */
  #keys = new Map();
  /** @type {Map<string, HTMLElement>} the columns of answers side by side, by the key of the first */
  #besides = new Map();
  /** @type {Set<string>} message ids */
  #dirty = new Set();
  #frame = 0;
  #nearby = new IntersectionObserver((entries) => this.#drawNear(entries), { rootMargin: NEAR });

  connectedCallback() {
    this.addEventListener("click", (event) => this.#clicked(event));
    for (const type of ["pointerover", "focusin"]) {
      this.addEventListener(type, ({ target }) => /** @type {Element} */ (target).closest(".bar-button") && onBlocks());
    }
    for (const root of /** @type {NodeListOf<HTMLElement>} */ (this.querySelectorAll(".message"))) {
      this.#painted.set(root.dataset.message ?? "", root);
    }
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
    const rows = path.map((message) => {
      const beside = this.besideOf(message.id);
      return beside.length ? beside : [message];
    });
    const all = rows.flat();
    this.#keys = new Map(all.map((message) => [message.id, message.key ?? message.id]));
    /** @type {HTMLElement[][]} */
    const turns = [];
    rows.forEach((row, index) => {
      if (row[0].role === "user" || !turns.length) turns.push([]);
      const isFar = index < rows.length - NUM_DRAWN_AT_ONCE;
      const roots = row.map((message) => this.#place(message, isFar));
      const turn = /** @type {HTMLElement[]} */ (turns.at(-1));
      if (row.length > 1) turn.push(this.#columns(/** @type {string} */ (row[0].key ?? row[0].id), roots));
      else turn.push(...roots);
    });
    this.#arrange(turns);
    this.#forgetGone();
  }

  /**
   * @param {Message} message
   * @param {boolean} isFar
   */
  #place(message, isFar) {
    const view = this.#viewOf(message);
    if (isFar && !view.isDrawn) this.#sketch(view, message);
    else this.#draw(message.id);
    return view.root;
  }

  /**
   * The element in which answers stand side by side.
   * @param {string} key of the first
   * @param {HTMLElement[]} roots
   */
  #columns(key, roots) {
    const columns = this.#besides.get(key) ?? element("div", { class: "beside" });
    this.#besides.set(key, columns);
    if (!sameNodes(columns.children, roots)) columns.replaceChildren(...roots);
    return columns;
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

  /**
   * The element of a message, drawn together with those around it, marked as what was looked for.
   * @param {string} id
   * @returns {HTMLElement | null}
   */
  reveal(id) {
    for (const found of this.querySelectorAll("[data-found]")) found.removeAttribute("data-found");
    const ids = [...this.#keys.keys()];
    const at = ids.indexOf(id);
    for (const near of ids.slice(Math.max(0, at - 2), at + NUM_DRAWN_AT_ONCE)) this.#draw(near);
    const root = this.rootOf(id);
    root?.setAttribute("data-found", "");
    return root;
  }

  /**
   * The element of a message that is shown.
   * @param {string} id
   * @returns {HTMLElement | null}
   */
  rootOf(id) {
    return this.#views.get(this.#keys.get(id) ?? "")?.root ?? null;
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
      const root = this.#painted.get(message.id) ?? sketchRoot();
      this.#painted.delete(message.id);
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
      if (!sameNodes([...turn.children].filter(isRow), roots)) turn.replaceChildren(...roots);
    });
    while (this.children.length > turns.length) this.lastElementChild?.remove();
  }

  #forgetGone() {
    const wanted = new Set(this.#keys.values());
    for (const [key, view] of this.#views) {
      if (wanted.has(key)) continue;
      this.#nearby.unobserve(view.root);
      view.close();
      this.#views.delete(key);
    }
    for (const [key, columns] of this.#besides) if (!columns.isConnected) this.#besides.delete(key);
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const target = /** @type {Element} */ (event.target);
    const message = /** @type {HTMLElement | null} */ (target.closest("[data-message]"));
    const id = message?.dataset.message ?? "";
    if (target.closest(".bar-button")) onBlocks(({ actOnBlock }) => actOnBlock(target));
    const copy = target.closest("[data-copy]");
    if (copy) this.#copyMessage(id, copy);
    const trace = target.closest("[data-trace]");
    if (trace) this.dispatchEvent(new CustomEvent("trace", { detail: { id, opener: trace } }));
    const button = /** @type {HTMLElement | null} */ (target.closest("[data-act]"));
    if (!button || button.getAttribute("aria-disabled") === "true") return;
    this.dispatchEvent(new CustomEvent("act", { detail: { act: button.dataset.act, id, button } }));
  }

  /**
   * @param {string} id
   * @param {Element} button
   */
  async #copyMessage(id, button) {
    const shown = this.source(id);
    if (!shown) return;
    try {
      await copyText(textOf(shown.message.parts));
    } catch (error) {
      this.dispatchEvent(new CustomEvent("problem", { detail: /** @type {Error} */ (error).message }));
      return;
    }
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
  if (turn?.matches(".turn") && [...turn.children].find(isRow) === question) return turn;
  return element("section", { class: "turn" });
}

/**
 * @param {Element[]} present
 * @param {HTMLElement[]} wanted
 */
function sameNodes(present, wanted) {
  return present.length === wanted.length && wanted.every((node, index) => present[index] === node);
}

/** @param {Element} child of a turn; the line of what is left out is none */
function isRow(child) {
  return child.matches(".message, .beside");
}

customElements.define("message-list", MessageList);
