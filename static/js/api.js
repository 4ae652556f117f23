// @ts-check
/** Vitrine's own REST beside the socket (docs/socket.md). Errors carry words for people. */

import { gettext } from "./i18n.js";

const KEEPALIVE_CHARS = 20_000; // browsers take 64 KiB in all

class ApiError extends Error {
  /**
   * @param {number} status 0 when the server could not be reached
   * @param {string} code
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Api {
  /** @param {string} csrf */
  constructor(csrf) {
    this.csrf = csrf;
  }

  /**
   * @param {string} id
   * @param {boolean} [isFresh] from the server or not at all: never a kept copy (kept-chats.js)
   */
  conversation(id, isFresh) {
    return this.#call("GET", `/api/conversations/${id}`, undefined, undefined, isFresh ? "no-store" : "reload");
  }

  /** @param {string} message id of an answer */
  trace(message) {
    return this.#call("GET", `/api/messages/${message}/trace`);
  }

  /** What an answer was written from, with its text. @param {string} message */
  async excerpts(message) {
    return (await this.#call("GET", `/api/messages/${message}/excerpts`)).excerpts;
  }

  /**
   * The same of a temporary chat, of which the server knows nothing.
   * @param {import("./sources.js").Excerpt[]} excerpts
   */
  async excerptsAt(excerpts) {
    return (await this.#call("POST", "/api/excerpts", { excerpts })).excerpts;
  }

  /** All that was found for an answer. @param {string} message */
  retrieval(message) {
    return this.#call("GET", `/api/messages/${message}/retrieval`);
  }

  async collections() {
    return (await this.#call("GET", "/api/collections")).collections;
  }

  /** The newest whose names have it. @param {string} q */
  async documentsNamed(q) {
    return (await this.#call("GET", `/api/documents${queryOf({ q })}`)).documents;
  }

  /** @param {string} id */
  document(id) {
    return this.#call("GET", `/api/documents/${id}`);
  }

  /** @param {import("./token-meter.js").Draft} draft */
  meter(draft) {
    return this.#call("POST", "/api/meter", draft);
  }

  /** How much of the latest chats the engine still has in its cache. */
  warmth() {
    return this.#call("GET", "/api/warmth");
  }

  /** @param {string} message id of an answer */
  tokens(message) {
    return this.#call("GET", `/api/messages/${message}/tokens`);
  }

  /**
   * Begin another answer from a token on.
   * @param {import("./glass.js").TokenBranch & {clientId: string}} branch
   */
  branchAtToken({ answer, turn, token, choice, clientId }) {
    const at = { turn, token, choice, client_id: clientId };
    return this.#call("POST", `/api/messages/${answer}/branch`, at);
  }

  /**
   * The events of a replay.
   * @param {string} message id of an answer
   * @param {AbortSignal} signal
   */
  async *replay(message, signal) {
    const headers = { "X-CSRFToken": this.csrf };
    const init = { method: "POST", headers, signal };
    const response = await fetch(`/api/messages/${message}/replay`, init);
    if (response.ok && response.body) {
      const { serverSent } = await import("./server-sent.js");
      yield* serverSent(response.body);
    } else throw problemOf(response.status, await response.json().catch(() => ({})));
  }

  /**
   * What is said in a WAV file.
   * @param {Blob} sound
   * @param {AbortSignal} signal
   * @returns {Promise<string>}
   */
  async transcribe(sound, signal) {
    const headers = { "X-CSRFToken": this.csrf, "Content-Type": "audio/wav" };
    const response = await fetch("/api/transcriptions", { method: "POST", headers, body: sound, signal }).catch((error) => {
      throw signal.aborted ? error : new ApiError(0, "offline", "");
    });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer.text;
    throw problemOf(response.status, answer);
  }

  /**
   * A text as sound.
   * @param {string} text
   * @param {AbortSignal} signal
   */
  async speech(text, signal) {
    const headers = { "X-CSRFToken": this.csrf, "Content-Type": "application/json" };
    const response = await fetch("/api/speech", { method: "POST", headers, body: JSON.stringify({ text }), signal });
    if (response.ok) return response.arrayBuffer();
    throw problemOf(response.status, await response.json().catch(() => ({})));
  }

  /** What the sidebar shows first. */
  sidebar() {
    return this.#call("GET", "/api/sidebar");
  }

  /**
   * A page of a list of chats.
   * @param {{cursor?: string | null, folder?: string, pinned?: boolean, archived?: boolean,
   *   signal?: AbortSignal}} [list]
   */
  conversations({ signal, ...list } = {}) {
    return this.#call("GET", `/api/conversations${queryOf(list)}`, undefined, signal);
  }

  /** @param {{text: string, cursor: string | null, signal: AbortSignal}} search */
  search({ text, cursor, signal }) {
    const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return this.#call("GET", `/api/search${queryOf({ q: text, cursor, timezone })}`, undefined, signal);
  }

  /**
   * Change chats: title, folder, tags, pinned, archived, deleted.
   * @param {object[]} changes
   */
  arrange(changes) {
    return this.#call("PATCH", "/api/conversations", { changes });
  }

  /** @returns {Promise<string[]>} */
  async tags() {
    return (await this.#call("GET", "/api/tags")).tags;
  }

  /** @returns {Promise<string[]>} */
  async folderNames() {
    return (await this.#call("GET", "/api/folders")).folders.map((/** @type {{name: string}} */ { name }) => name);
  }

  /** @param {string} name */
  createFolder(name) {
    return this.#call("POST", "/api/folders", { name });
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {number} version the one that the reader saw
   */
  renameFolder(id, name, version) {
    return this.#call("PATCH", `/api/folders/${id}`, { name, version });
  }

  /** @param {string} id */
  removeFolder(id) {
    return this.#call("DELETE", `/api/folders/${id}`);
  }

  /**
   * @param {string} id
   * @param {string} title
   * @param {number} version the one that the reader saw
   */
  rename(id, title, version) {
    return this.#call("PATCH", `/api/conversations/${id}`, { title, version });
  }

  /** @param {{conversation?: string, before?: string}} [filter] */
  shares(filter = {}) {
    const given = Object.entries(filter).filter(([, value]) => value);
    return this.#call("GET", `/api/shares?${new URLSearchParams(given)}`);
  }

  /** @param {object} wish */
  createShare(wish) {
    return this.#call("POST", "/api/shares", wish);
  }

  /** @param {string} id */
  revokeShare(id) {
    return this.#call("DELETE", `/api/shares/${id}`);
  }

  revokeAllShares() {
    return this.#call("DELETE", "/api/shares");
  }

  /** Delete some of all chats: `{deleted, remaining}`. @param {string} confirm the words that say so */
  deleteSome(confirm) {
    return this.#call("DELETE", "/api/conversations", { confirm });
  }

  imports() {
    return this.#call("GET", "/api/imports");
  }

  /** @param {string} id */
  startImport(id) {
    return this.#call("POST", `/api/imports/${id}/start`);
  }

  /** @param {string} id */
  removeImport(id) {
    return this.#call("DELETE", `/api/imports/${id}`);
  }

  /** @param {string} id */
  setup(id) {
    return this.#call("GET", `/api/conversations/${id}/setup`);
  }

  /**
   * @param {string} id
   * @param {object} changes with the version that the reader saw
   */
  changeSetup(id, changes) {
    return this.#call("PATCH", `/api/conversations/${id}/setup`, changes);
  }

  /** How one's budgets stand. */
  async budgets() {
    const today = new Date().toISOString().slice(0, 10);
    return (await this.#call("GET", `/api/usage?since=${today}&until=${today}`)).budgets;
  }

  /** Of custom instructions and the like. @param {object} changes */
  personalise(changes) {
    return this.#call("PATCH", "/api/personalisation", changes);
  }

  /**
   * Of what is remembered of the user.
   * @param {string} method
   * @param {string} [id] empty: of all
   * @param {object} [body]
   */
  memory(method, id = "", body) {
    return this.#call(method, `/api/memories${id && `/${id}`}`, body);
  }

  async assistants() {
    return (await this.#call("GET", "/api/assistants")).items;
  }

  async prompts() {
    return (await this.#call("GET", "/api/prompts")).items;
  }

  /** @param {string} id */
  summary(id) {
    return this.#call("GET", `/api/summaries/${id}`);
  }

  /**
   * @param {string} id
   * @param {boolean} isPinned
   */
  pin(id, isPinned) {
    return this.#call(isPinned ? "PUT" : "DELETE", `/api/messages/${id}/pin`);
  }

  /**
   * @param {string} id
   * @param {import("./feedback.js").Feedback | null} feedback null takes it back
   */
  rate(id, feedback) {
    return this.#call(feedback ? "PUT" : "DELETE", `/api/messages/${id}/feedback`, feedback ?? undefined);
  }

  /** @param {{client_id: string, model: string, messages: object[]}} temporary */
  keep(temporary) {
    return this.#call("POST", "/api/temporary/keep", temporary);
  }

  /** @param {string} message whose branch is shown from now on */
  choose(message) {
    return this.#call("POST", `/api/messages/${message}/choose`, {});
  }

  /**
   * @param {string} message
   * @param {string} text
   * @param {string} clientId
   */
  editAnswer(message, text, clientId) {
    return this.#call("POST", `/api/messages/${message}/edit`, { text, client_id: clientId });
  }

  /**
   * @param {string} message
   * @param {{deletion: string, replies: boolean, version: number}} how `version`: what the reader saw
   */
  deleteMessage(message, { deletion, replies, version }) {
    const query = `deletion=${deletion}&replies=${replies}&version=${version}`;
    return this.#call("DELETE", `/api/messages/${message}?${query}`);
  }

  /**
   * @param {string} conversation
   * @param {string} deletion
   */
  restore(conversation, deletion) {
    return this.#call("POST", `/api/conversations/${conversation}/messages/restore`, { deletion });
  }

  /**
   * @param {string} message
   * @param {string} clientId
   */
  branch(message, clientId) {
    return this.#call("POST", `/api/messages/${message}/branch-off`, { client_id: clientId });
  }

  /** @param {string} model */
  loadModel(model) {
    return this.#call("POST", "/api/models/load", { model });
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [value]
   * @param {AbortSignal} [signal]
   * @param {RequestCache} [cache]
   */
  #call(method, path, value, signal, cache) {
    return request(this.csrf, method, path, value, signal, cache);
  }
}

/**
 * @param {string} csrf
 * @param {string} method
 * @param {string} path
 * @param {object} [value]
 * @param {AbortSignal} [signal]
 * @param {RequestCache} [cache] "reload": what the service worker has kept will do, if need be
 * @returns {Promise<any>}
 */
export async function request(csrf, method, path, value, signal, cache = "no-store") {
  const headers = { "X-CSRFToken": csrf, "Content-Type": "application/json" };
  // A change outlives its page: who renames a chat and leaves at once has renamed it.
  const body = value && JSON.stringify(value);
  const keepalive = method !== "GET" && (body?.length ?? 0) < KEEPALIVE_CHARS;
  // A page that is gone back to would be told what was true when it was left.
  /** @type {RequestInit} */
  const init = { method, headers, keepalive, body, signal, cache };
  const response = await fetch(path, init).catch(() => {
    throw new ApiError(0, "offline", gettext("The server cannot be reached. Nothing was changed."));
  });
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw problemOf(response.status, answer);
}

/**
 * @param {number} status
 * @param {any} value
 */
function problemOf(status, value) {
  const { code = "error", message = gettext("The server answered %(status)s.", { status }) } = value.error ?? {};
  return new ApiError(status, code, message);
}

/**
 * What is null or undefined is left out.
 * @param {Record<string, unknown>} values
 */
export function queryOf(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return query.size ? `?${query}` : "";
}
