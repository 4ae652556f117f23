// @ts-check
/** Uploads, two at a time: each with its progress, to be cancelled or tried again. */

import { gettext } from "./i18n.js";

const AT_A_TIME = 2;
const MAX_NAME_CHARS = 200;

/**
 * @typedef {{id: number, file: File, path: string, document: string | null, size: number, loaded: number,
 *   state: "waiting" | "sending" | "sent" | "failed", problem: string}} Upload `document` is the one that
 *   gets a new version
 */

export class Uploads extends EventTarget {
  /** @type {Upload[]} */
  items = [];
  /** @type {Map<number, XMLHttpRequest>} */
  #requests = new Map();
  #numMade = 0;

  /**
   * Events: "changed" with the upload in `detail`, "sent" with the document in `detail`, "cleared".
   * @param {string} csrf
   * @param {string} collection
   * @param {() => XMLHttpRequest} [make] a request, for tests
   */
  constructor(csrf, collection, make = () => new XMLHttpRequest()) {
    super();
    this.csrf = csrf;
    this.collection = collection;
    this.make = make;
  }

  get isBusy() {
    return this.items.some(({ state }) => state === "waiting" || state === "sending");
  }

  /**
   * @param {import("./document-files.js").Chosen[]} chosen
   * @param {string | null} [document]
   */
  add(chosen, document = null) {
    for (const { file, path } of chosen) {
      /** @type {Upload} */
      const upload = { id: ++this.#numMade, file, path, document, size: file.size, loaded: 0, state: "waiting", problem: "" };
      this.items.push(upload);
      this.#tell(upload);
    }
    this.#begin();
  }

  /** @param {Upload} upload */
  retry(upload) {
    Object.assign(upload, { state: "waiting", loaded: 0, problem: "" });
    this.#tell(upload);
    this.#begin();
  }

  /** Stop it if it goes on, and leave it out. @param {Upload} upload */
  remove(upload) {
    this.items = this.items.filter((item) => item !== upload);
    this.#requests.get(upload.id)?.abort();
    this.#requests.delete(upload.id);
    this.dispatchEvent(new Event("cleared"));
    this.#begin();
  }

  /** Leave out those that are over. */
  clear() {
    this.items = this.items.filter(({ state }) => state === "waiting" || state === "sending");
    this.dispatchEvent(new Event("cleared"));
  }

  #begin() {
    for (const upload of this.items) {
      if (this.#requests.size >= AT_A_TIME) return;
      if (upload.state === "waiting") this.#send(upload);
    }
  }

  /** By XMLHttpRequest: fetch tells nothing of how much is uploaded. @param {Upload} upload */
  #send(upload) {
    const request = this.make();
    this.#requests.set(upload.id, request);
    upload.state = "sending";
    request.open("POST", this.#address(upload));
    request.setRequestHeader("X-CSRFToken", this.csrf);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", ({ loaded }) => {
      upload.loaded = loaded;
      this.#tell(upload);
    });
    request.addEventListener("load", () => this.#end(upload, request.status, parsed(request.responseText)));
    request.addEventListener("error", () => this.#fail(upload, gettext("The server cannot be reached. Nothing was uploaded.")));
    request.send(upload.file);
    this.#tell(upload);
  }

  /** @param {Upload} upload */
  #address({ file, path, document }) {
    const query = new URLSearchParams({ name: shortened(file.name) });
    if (document) return `/api/documents/${document}/versions?${query}`;
    if (path) query.set("path", path);
    return `/api/collections/${this.collection}/documents?${query}`;
  }

  /** @param {Upload} upload @param {number} status @param {any} answer */
  #end(upload, status, answer) {
    if (status !== 201) {
      return this.#fail(upload, answer.error?.message ?? gettext("The server answered %(status)s.", { status }));
    }
    this.#requests.delete(upload.id);
    upload.state = "sent";
    upload.loaded = upload.size;
    this.#tell(upload);
    this.dispatchEvent(new CustomEvent("sent", { detail: answer }));
    this.#begin();
  }

  /** @param {Upload} upload @param {string} problem */
  #fail(upload, problem) {
    this.#requests.delete(upload.id);
    Object.assign(upload, { state: "failed", problem });
    this.#tell(upload);
    this.#begin();
  }

  /** @param {Upload} upload */
  #tell(upload) {
    this.dispatchEvent(new CustomEvent("changed", { detail: upload }));
  }
}

/** A name that is too long keeps its end, which says what the file is. @param {string} name */
export function shortened(name) {
  if (name.length <= MAX_NAME_CHARS) return name;
  const dot = name.lastIndexOf(".");
  const end = dot > 0 && name.length - dot <= 12 ? name.slice(dot) : "";
  return name.slice(0, MAX_NAME_CHARS - end.length) + end;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
