// @ts-check
/** Brings a file to the server, and waits until it is read. */

import { shortened } from "./document-uploads.js";
import { gettext } from "./i18n.js";
import { size } from "./import-words.js";

const LOOK_MS = 500;
const OFFLINE = gettext("The server cannot be reached. Nothing was uploaded.");

/** @typedef {import("./picked-sources.js").Attachment} Attachment */

export class Attachments {
  /** @type {Map<Attachment, XMLHttpRequest>} */
  #requests = new Map();

  /**
   * @param {import("./api.js").Api} api
   * @param {import("./picked-sources.js").PickedSources} picked
   * @param {number} maxBytes of one file
   * @param {{make?: () => XMLHttpRequest, pause?: (ms: number) => Promise<void>}} [surroundings] for tests
   */
  constructor(api, picked, maxBytes, { make = () => new XMLHttpRequest(), pause = asleep } = {}) {
    this.api = api;
    this.maxBytes = maxBytes;
    this.picked = picked;
    this.make = make;
    this.pause = pause;
    picked.on("changed", () => this.#dropUnwanted());
  }

  /**
   * By XMLHttpRequest: fetch tells nothing of how much is uploaded.
   * @param {Attachment} attachment
   */
  send(attachment) {
    const { file } = attachment;
    if (!file) return;
    if (file.size > this.maxBytes) {
      const problem = gettext("The file is larger than %(size)s.", { size: size(this.maxBytes) });
      return this.picked.change(attachment, { state: "failed", progress: null, problem, file: null });
    }
    this.picked.change(attachment, { state: "sending", progress: 0, problem: "", document: null });
    const request = this.make();
    this.#requests.set(attachment, request);
    request.open("POST", `/api/documents/attach?${new URLSearchParams({ name: shortened(file.name) })}`);
    request.setRequestHeader("X-CSRFToken", this.api.csrf);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      this.picked.change(attachment, { progress: total ? loaded / total : null });
    });
    request.addEventListener("error", () => this.#fail(attachment, OFFLINE));
    request.addEventListener("load", () => this.#sent(attachment, request));
    request.send(file);
  }

  /**
   * @param {Attachment} attachment
   * @param {XMLHttpRequest} request
   */
  #sent(attachment, { status, responseText }) {
    this.#requests.delete(attachment);
    const answer = parsed(responseText);
    if (status !== 201) {
      return this.#fail(attachment, answer.error?.message ?? gettext("The server answered %(status)s.", { status }));
    }
    this.picked.change(attachment, { document: answer.id, name: answer.name });
    return this.#follow(attachment, answer);
  }

  /**
   * @param {Attachment} attachment
   * @param {any} document as the server says it is now
   */
  async #follow(attachment, document) {
    for (let now = document; this.picked.has(attachment); now = await this.#look(now)) {
      const { state, reason, num_chunks, num_embedded } = now.version;
      if (state === "failed") return this.#fail(attachment, reason || gettext("The file could not be read."));
      if (state === "ready") return this.picked.change(attachment, { state: "ready", progress: 1 });
      const progress = state === "embedding" && num_chunks ? num_embedded / num_chunks : null;
      this.picked.change(attachment, { state: "reading", progress });
      await this.pause(LOOK_MS);
    }
  }

  /** @param {any} document what is known of it stays, where the server cannot be reached */
  async #look(document) {
    try {
      return await this.api.document(document.id);
    } catch (error) {
      const { status, message } = /** @type {any} */ (error);
      return status === 404 ? { ...document, version: { state: "failed", reason: message } } : document;
    }
  }

  /**
   * @param {Attachment} attachment
   * @param {string} problem
   */
  #fail(attachment, problem) {
    this.#requests.delete(attachment);
    this.picked.change(attachment, { state: "failed", progress: null, problem });
  }

  #dropUnwanted() {
    for (const [attachment, request] of [...this.#requests]) {
      if (this.picked.has(attachment)) continue;
      this.#requests.delete(attachment);
      request.abort();
    }
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

/** @param {number} ms @returns {Promise<void>} */
function asleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
