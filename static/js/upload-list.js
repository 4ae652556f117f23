// @ts-check
/** The uploads of a page: a row each with its bar, and their sum. */

import { uploadLine } from "./document-words.js";
import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { size } from "./import-words.js";

const MAX_SHOWN = 100; // of thousands that wait, the rest is in the sum

/** @typedef {import("./document-uploads.js").Upload} Upload */

export class UploadList {
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();

  /**
   * @param {HTMLElement} root
   * @param {import("./document-uploads.js").Uploads} uploads
   */
  constructor(root, uploads) {
    this.root = root;
    this.uploads = uploads;
    this.list = find(root, "[data-uploads-list]");
    this.sum = find(root, "[data-uploads-sum]");
    const clear = find(root, "[data-uploads-clear]");
    clear.addEventListener("click", () => uploads.clear());
    uploads.addEventListener("changed", (event) => {
      this.#show(/** @type {CustomEvent} */ (event).detail);
      this.#count();
    });
    uploads.addEventListener("cleared", () => this.#sweep());
    this.clear = clear;
  }

  /** @param {Upload} upload */
  #show(upload) {
    if (upload.state === "sent") return this.#drop(upload.id);
    const row = this.#rows.get(upload.id) ?? this.#made(upload);
    if (!row) return;
    row.dataset.state = upload.state;
    setText(find(row, ".upload__line"), uploadLine(upload));
    const bar = find(row, "progress");
    bar.hidden = upload.state === "failed" || upload.state === "waiting";
    if (upload.size && upload.loaded < upload.size) bar.value = upload.loaded / upload.size;
    else bar.removeAttribute("value");
    find(row, "[data-again]").hidden = upload.state !== "failed";
  }

  /** @param {Upload} upload */
  #made(upload) {
    if (this.#rows.size >= MAX_SHOWN && upload.state === "waiting") return null;
    const name = upload.path || upload.file.name;
    const again = element("button", { type: "button", class: "small-button", "data-again": "", "aria-label": gettext("Try again: %(name)s", { name }) }, [icon("rotate-cw"), gettext("Try again")]);
    const cancel = element("button", { type: "button", class: "icon-button", "aria-label": gettext("Leave out %(name)s", { name }) }, [icon("x")]);
    again.addEventListener("click", () => this.uploads.retry(upload));
    cancel.addEventListener("click", () => this.uploads.remove(upload));
    const row = element("li", { class: "upload" }, [
      element("span", { class: "upload__main" }, [
        element("span", {}, [element("bdi", {}, [name])]),
        element("span", { class: "upload__line numbers" }),
        element("progress", { class: "progress", max: "1", "aria-label": gettext("Upload of %(name)s", { name }) }),
      ]),
      again,
      cancel,
    ]);
    this.#rows.set(upload.id, row);
    this.list.append(row);
    return row;
  }

  /** @param {number} id */
  #drop(id) {
    this.#rows.get(id)?.remove();
    this.#rows.delete(id);
  }

  #sweep() {
    const kept = new Set(this.uploads.items.map(({ id }) => id));
    for (const id of [...this.#rows.keys()]) if (!kept.has(id)) this.#drop(id);
    this.#count();
  }

  #count() {
    const { items } = this.uploads;
    const open = items.filter(({ state }) => state !== "sent");
    const bytes = items.reduce((sum, upload) => sum + upload.size, 0);
    const loaded = items.reduce((sum, upload) => sum + (upload.state === "sent" ? upload.size : upload.loaded), 0);
    const numSent = items.length - open.length;
    this.root.hidden = open.length === 0;
    setText(this.sum, gettext("%(done)s of %(total)s files, %(loaded)s of %(bytes)s", { done: numSent, total: items.length, loaded: size(loaded), bytes: size(bytes) }));
    this.clear.hidden = this.uploads.isBusy || open.length === 0;
    if (!open.length && items.length) this.uploads.items = [];
  }
}
