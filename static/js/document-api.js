// @ts-check
/** REST of collections and documents. Errors carry words for people. */

import { queryOf, request } from "./api.js";

/**
 * @typedef {{id: string, number: number, state: string, reason: string, notes: string[], num_pages: number,
 *   num_chunks: number, num_embedded: number, created_at: string, ready_at: string | null}} Version
 * @typedef {{id: string, collection: string, name: string, media_type: string, tags: string[],
 *   source_url: string, created_at: string, created_by: {name: string} | null, size_bytes: number,
 *   live_version: string | null, version: Version | null}} Document
 * @typedef {{id: string, name: string, description: string, is_mine: boolean, may_write: boolean,
 *   caches_answers: boolean, owner: {name: string}, num_documents: number, num_chunks: number, updated_at: string}} Collection
 * @typedef {{id: number, user: {name: string, email: string} | null, group: {id: number, name: string} | null,
 *   may_write: boolean}} Access
 * @typedef {{document: string, version: string, collection: string, name: string, start: number, end: number,
 *   first_page: number, last_page: number, page_label?: string, context: string, text: string,
 *   lexical_rank: number | null}} Hit
 */

export class DocumentApi {
  /** @param {string} csrf */
  constructor(csrf) {
    this.csrf = csrf;
  }

  /** @returns {Promise<Collection[]>} */
  async collections() {
    return (await this.#call("GET", "/api/collections")).collections;
  }

  /** @param {{name: string, description: string, caches_answers: boolean}} values @returns {Promise<Collection>} */
  createCollection(values) {
    return this.#call("POST", "/api/collections", values);
  }

  /** @param {string} id @param {{name?: string, description?: string, caches_answers?: boolean}} values @returns {Promise<Collection>} */
  changeCollection(id, values) {
    return this.#call("PATCH", `/api/collections/${id}`, values);
  }

  /** @param {string} id */
  removeCollection(id) {
    return this.#call("DELETE", `/api/collections/${id}`);
  }

  /**
   * @param {string} collection
   * @param {{q?: string, after?: string | null, signal?: AbortSignal}} [page]
   * @returns {Promise<{documents: Document[], has_more: boolean}>}
   */
  documents(collection, { signal, ...page } = {}) {
    return this.#call("GET", `/api/collections/${collection}/documents${queryOf(page)}`, undefined, signal);
  }

  /** @param {string} collection @param {string} url @returns {Promise<Document>} */
  addLink(collection, url) {
    return this.#call("POST", `/api/collections/${collection}/links`, { url });
  }

  /** @param {string} id @returns {Promise<Document>} */
  document(id) {
    return this.#call("GET", `/api/documents/${id}`);
  }

  /** @param {string} id @param {{name?: string, tags?: string[]}} values @returns {Promise<Document>} */
  changeDocument(id, values) {
    return this.#call("PATCH", `/api/documents/${id}`, values);
  }

  /** @param {string} id */
  removeDocument(id) {
    return this.#call("DELETE", `/api/documents/${id}`);
  }

  /** @param {string} id @returns {Promise<Document>} */
  retry(id) {
    return this.#call("POST", `/api/documents/${id}/retry`);
  }

  /** Fetch it again from where it came from. @param {string} id @returns {Promise<Document>} */
  refresh(id) {
    return this.#call("POST", `/api/documents/${id}/refresh`);
  }

  /**
   * @param {string} collection
   * @returns {Promise<{accesses: Access[], groups: {id: number, name: string}[], may_share_with_everybody: boolean}>}
   */
  accesses(collection) {
    return this.#call("GET", `/api/collections/${collection}/accesses`);
  }

  /** @param {string} collection @param {object} access @returns {Promise<Access>} */
  grant(collection, access) {
    return this.#call("POST", `/api/collections/${collection}/accesses`, access);
  }

  /** @param {string} collection @param {number} id */
  revoke(collection, id) {
    return this.#call("DELETE", `/api/collections/${collection}/accesses/${id}`);
  }

  /** @param {string} query @param {string} collection @param {AbortSignal} signal @returns {Promise<Hit[]>} */
  async search(query, collection, signal) {
    const asked = { query, collections: [collection], limit: 8 };
    return (await this.#call("POST", "/api/documents/search", asked, signal)).hits;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [value]
   * @param {AbortSignal} [signal]
   */
  #call(method, path, value, signal) {
    return request(this.csrf, method, path, value, signal);
  }
}
