// @ts-check
/** The documents of a collection: a row each, which changes where it stands. */

import { viewerUrl } from "./document-links.js";
import { factsOf, isUnfinished, stateOf } from "./document-words.js";
import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";

/** @typedef {import("./document-api.js").Document} Document */

export class DocumentRows extends EventTarget {
  /** @type {Map<string, {document: Document, row: HTMLElement, toldAt: number}>} */
  #rows = new Map();

  /**
   * Events: "menu" with {document, opener}, "retry" with a document.
   * @param {HTMLElement} list
   * @param {boolean} mayWrite
   */
  constructor(list, mayWrite) {
    super();
    this.list = list;
    this.mayWrite = mayWrite;
  }

  get size() {
    return this.#rows.size;
  }

  /** The id of the last one. */
  get last() {
    return /** @type {HTMLElement | null} */ (this.list.lastElementChild)?.dataset.document ?? null;
  }

  /** @param {string} id */
  document(id) {
    return this.#rows.get(id)?.document;
  }

  /**
   * Those on their way of which nothing was told for a while, the longest silent first.
   * @param {number} ms
   */
  silent(ms) {
    const since = Date.now() - ms;
    const found = [...this.#rows.values()].filter(({ document, toldAt }) => isUnfinished(document) && toldAt < since);
    return found.sort((a, b) => a.toldAt - b.toldAt).map(({ document }) => document);
  }

  clear() {
    this.#rows.clear();
    this.list.replaceChildren();
  }

  /**
   * Show documents, changed or new; new ones at the end, or at the beginning.
   * @param {Document[]} documents
   * @param {"end" | "start"} [place]
   */
  put(documents, place = "end") {
    for (const document of documents) {
      const known = this.#rows.get(document.id);
      const row = known?.row ?? this.#made(document);
      if (!known) this.list[place === "end" ? "append" : "prepend"](row);
      this.#rows.set(document.id, { document, row, toldAt: Date.now() });
      this.#fill(row, document);
    }
  }

  /**
   * Leave one out; the focus of whoever has done it goes to what stands there now.
   * @param {string} id
   * @param {boolean} [isWanted]
   */
  drop(id, isWanted = false) {
    const row = this.#rows.get(id)?.row;
    if (!row) return;
    const next = row.nextElementSibling ?? row.previousElementSibling;
    const hadFocus = isWanted || row.contains(document.activeElement);
    row.remove();
    this.#rows.delete(id);
    if (hadFocus) /** @type {HTMLElement | null | undefined} */ (next?.querySelector("[data-menu]"))?.focus();
  }

  /** @param {Document} document */
  #made({ id }) {
    const menu = element("button", { type: "button", class: "icon-button", "data-menu": "", "aria-haspopup": "menu", "aria-expanded": "false" }, [icon("ellipsis")]);
    menu.addEventListener("click", () => this.#tell("menu", { document: this.document(id), opener: menu }));
    const retry = element("button", { type: "button", class: "small-button", "data-retry": "" }, [icon("rotate-cw"), gettext("Try again")]);
    retry.addEventListener("click", () => this.#tell("retry", this.document(id)));
    return element("li", { class: "document-row", "data-document": id }, [
      icon("file-text"),
      element("span", { class: "document-row__main" }, [
        element("span", { class: "document-row__title" }, [element("a", { class: "document-row__name", dir: "auto" })]),
        element("span", { class: "document-row__tags" }),
        element("span", { class: "document-row__about numbers" }),
        element("span", { class: "document-row__state" }, [
          element("span", { class: "badge numbers", dir: "auto" }),
          element("progress", { class: "progress", max: "1" }),
          retry,
        ]),
      ]),
      menu,
    ]);
  }

  /**
   * @param {HTMLElement} row
   * @param {Document} document
   */
  #fill(row, document) {
    const { state, text, progress } = stateOf(document);
    const name = find(row, ".document-row__name");
    const bar = find(row, "progress");
    const badge = find(row, ".badge");
    row.dataset.state = state;
    setText(name, document.name);
    name.setAttribute("href", viewerUrl({ document: document.id }));
    setText(find(row, ".document-row__about"), factsOf(document));
    find(row, ".document-row__tags").replaceChildren(...document.tags.map((tag) => element("span", { class: "tag", dir: "auto" }, [tag])));
    badge.dataset.state = state;
    setText(badge, text);
    bar.hidden = progress === undefined;
    bar.setAttribute("aria-label", gettext("Progress of %(name)s", { name: document.name }));
    if (progress == null) bar.removeAttribute("value");
    else bar.value = progress;
    find(row, "[data-retry]").hidden = !this.mayWrite || state !== "failed";
    find(row, "[data-retry]").setAttribute("aria-label", gettext("Try again: %(name)s", { name: document.name }));
    find(row, "[data-menu]").setAttribute("aria-label", gettext("More for %(name)s", { name: document.name }));
  }

  /** @param {string} name @param {unknown} detail */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
