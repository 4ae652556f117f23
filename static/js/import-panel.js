// @ts-check
/** Importing chats: upload, what was found, the word to go on, and how far it is. */

import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { chats, reportFacts, size, statusLine } from "./import-words.js";

/** @typedef {import("./import-words.js").ChatImport} ChatImport */

const WORKING = ["checking", "importing"];
const ONGOING = ["uploading", ...WORKING];

export class ImportPanel {
  /** @type {ChatImport | null} */
  #import = null;
  /** @type {EventSource | null} */
  #news = null;
  /** @type {XMLHttpRequest | null} */
  #upload = null;
  #numChecked = 0;

  /**
   * @param {HTMLElement} root
   * @param {import("./api.js").Api} api
   */
  constructor(root, api) {
    this.root = root;
    this.api = api;
    this.panel = find(root, "[data-import-panel]");
    this.input = find(root, "input[type=file]");
    this.status = find(root, "[data-import-status]");
    this.heard = find(root, "[role=status]");
    this.bar = find(root, "progress");
    this.input.addEventListener("change", () => this.#choose(this.input.files?.[0]));
    find(root, "[data-import-start]").addEventListener("click", () => this.#start());
    find(root, "[data-import-remove]").addEventListener("click", () => this.#remove());
    this.#listenForDrops();
  }

  /** Show what is under way since an earlier visit. */
  async resume() {
    const { items } = await this.api.imports();
    const unfinished = items.find((/** @type {ChatImport} */ { status }) => status !== "done" && status !== "failed");
    if (unfinished) this.#show(unfinished);
  }

  #listenForDrops() {
    this.root.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      this.root.dataset.dragging = "";
    });
    this.root.addEventListener("dragleave", () => delete this.root.dataset.dragging);
    this.root.addEventListener("drop", (event) => {
      event.preventDefault();
      delete this.root.dataset.dragging;
      this.#choose(event.dataTransfer?.files[0]);
    });
  }

  /** In the place of one that was not started, of which nothing is seen from here on. @param {File} [file] */
  #choose(file) {
    if (!file) return;
    this.input.value = "";
    this.#leave();
    if (this.#import?.status === "checked") this.api.removeImport(this.#import.id).catch(() => null);
    this.#import = null;
    this.panel.hidden = false;
    this.#describe(file.name, file.size, {});
    this.#tell(gettext("Uploading"), "uploading");
    this.#send(file);
  }

  /** By XMLHttpRequest: fetch tells nothing of how much is uploaded. @param {File} file */
  #send(file) {
    const upload = (this.#upload = new XMLHttpRequest());
    upload.open("POST", `/api/imports?name=${encodeURIComponent(file.name.slice(0, 200))}`);
    upload.setRequestHeader("X-CSRFToken", this.api.csrf);
    upload.setRequestHeader("Content-Type", "application/octet-stream");
    upload.upload.addEventListener("progress", ({ loaded, total }) => {
      this.bar.value = total ? loaded / total : 0;
      this.#tell(gettext("Uploading: %(done)s of %(total)s", { done: size(loaded), total: size(total) }), "uploading");
    });
    upload.addEventListener("load", () => {
      const answer = parsed(upload.responseText);
      if (upload.status === 201) this.#show(answer);
      else this.#fail(answer.error?.message ?? gettext("The server answered %(status)s.", { status: upload.status }));
    });
    upload.addEventListener("error", () => this.#fail(gettext("The server cannot be reached. Nothing was uploaded.")));
    upload.send(file);
  }

  /** @param {ChatImport} chatImport */
  #show(chatImport) {
    this.#import = chatImport;
    this.panel.hidden = false;
    const { id, file_name, size_bytes, status, report } = chatImport;
    this.#describe(file_name, size_bytes, report);
    this.#tell(statusLine(chatImport), status);
    const isWorking = WORKING.includes(status);
    this.bar.parentElement.hidden = !isWorking;
    this.#showBar(chatImport);
    const start = find(this.root, "[data-import-start]");
    start.hidden = status !== "checked" || !report.num_new;
    setText(start, gettext("Import %(chats)s", { chats: chats(report.num_new ?? 0) }));
    setText(find(this.root, "[data-import-remove]"), isWorking || status === "checked" ? gettext("Cancel") : gettext("Close"));
    if (isWorking && !this.#news) this.#follow(id);
    if (!isWorking) this.#leave();
  }

  /**
   * While it checks nobody knows how much there is; while it imports the check has said it.
   * @param {ChatImport} chatImport
   */
  #showBar({ status, report }) {
    const total = status === "importing" ? this.#numChecked : 0;
    if (status === "checked") this.#numChecked = report.num_chats ?? 0;
    if (total) this.bar.value = (report.num_chats ?? 0) / total;
    else this.bar.removeAttribute("value");
  }

  /** @param {string} id */
  #follow(id) {
    this.#news = new EventSource(`/api/imports/${id}/events`);
    this.#news.addEventListener("message", ({ data }) => this.#show(JSON.parse(data)));
  }

  #leave() {
    this.#news?.close();
    this.#news = null;
    this.#upload?.abort();
    this.#upload = null;
  }

  async #start() {
    try {
      this.#show(await this.api.startImport(this.#import?.id ?? ""));
    } catch (error) {
      this.#tell(/** @type {Error} */ (error).message, "failed");
    }
  }

  async #remove() {
    this.#leave();
    this.panel.hidden = true;
    this.input.focus();
    if (this.#import) await this.api.removeImport(this.#import.id).catch(() => null);
    this.#import = null;
  }

  /**
   * @param {string} name
   * @param {number} bytes
   * @param {Partial<import("./import-words.js").Report>} report
   */
  #describe(name, bytes, report) {
    setText(find(this.root, ".data__file"), `${name} · ${size(bytes)}`);
    const facts = reportFacts(report).map((fact) => element("li", {}, [fact]));
    find(this.root, ".data__facts").replaceChildren(...facts);
    const skipped = report.skipped ?? [];
    const details = find(this.root, ".data__skipped");
    details.hidden = !skipped.length;
    const isAll = skipped.length === (report.num_skipped ?? 0);
    setText(find(details, "summary"), isAll ? gettext("What is left out, and why") : gettext("The first %(n)s that are left out, and why", { n: skipped.length }));
    find(details, "ul").replaceChildren(
      ...skipped.map(({ title, reason }) =>
        element("li", {}, [element("strong", { dir: "auto" }, [title || gettext("Without a title")]), reason]),
      ),
    );
    this.bar.parentElement.hidden = false;
    find(this.root, "[data-import-start]").hidden = true;
    setText(find(this.root, "[data-import-remove]"), gettext("Cancel"));
  }

  /** @param {string} words */
  #fail(words) {
    this.#upload = null;
    this.bar.parentElement.hidden = true;
    this.#tell(words, "failed");
    setText(find(this.root, "[data-import-remove]"), gettext("Close"));
  }

  /**
   * Of what goes on only the beginning is heard: how far it is changes many times a second.
   * @param {string} words
   * @param {string} state
   */
  #tell(words, state) {
    const goesOn = ONGOING.includes(state) && state === this.status.dataset.state;
    setText(this.status, words);
    this.status.dataset.state = state;
    if (!goesOn) setText(this.heard, words);
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
