// @ts-check
/** Vitrine's own REST beside the socket (docs/socket.md). Errors carry words for people. */

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

  /** @param {string} id */
  conversation(id) {
    return this.#call("GET", `/api/conversations/${id}`);
  }

  /** @param {string | null} [cursor] */
  conversations(cursor) {
    const query = cursor ? `?cursor=${encodeURIComponent(cursor)}` : "";
    return this.#call("GET", `/api/conversations${query}`);
  }

  /**
   * @param {string} id
   * @param {string} title
   * @param {number} version the one that the reader saw
   */
  rename(id, title, version) {
    return this.#call("PATCH", `/api/conversations/${id}`, { title, version });
  }

  /** @param {string} id */
  remove(id) {
    return this.#call("DELETE", `/api/conversations/${id}`);
  }

  /** @param {string} model */
  loadModel(model) {
    return this.#call("POST", "/api/models/load", { model });
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async #call(method, path, body) {
    const headers = { "X-CSRFToken": this.csrf, "Content-Type": "application/json" };
    // A change outlives its page: who renames a chat and leaves at once has renamed it.
    const keepalive = method !== "GET";
    const init = { method, headers, keepalive, body: body && JSON.stringify(body) };
    const response = await fetch(path, init).catch(() => {
      throw new ApiError(0, "offline", "The server cannot be reached. Nothing was changed.");
    });
    if (response.status === 204) return null;
    const value = await response.json().catch(() => ({}));
    if (response.ok) return value;
    const { code = "error", message = `The server answered ${response.status}.` } = value.error ?? {};
    throw new ApiError(response.status, code, message);
  }
}
