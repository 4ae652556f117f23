/** Stand-ins for what the page does not own: the clock, the network, the server behind it. */

export class FakeClock {
  now = 0;
  #timers = new Map();
  #next = 1;

  get surroundings() {
    return {
      now: () => this.now,
      setTimeout: (run, ms) => {
        this.#timers.set(this.#next, { at: this.now + ms, run });
        return this.#next++;
      },
      clearTimeout: (id) => this.#timers.delete(id),
    };
  }

  /** Let time pass, running what is due in order. */
  pass(ms) {
    const end = this.now + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end);
      if (!due.length) break;
      const [id, timer] = due.sort(([, a], [, b]) => a.at - b.at)[0];
      this.#timers.delete(id);
      this.now = timer.at;
      timer.run();
    }
    this.now = end;
  }
}

/** A WebSocket class whose instances a test opens, feeds and closes by hand. */
export function fakeNetwork() {
  const sockets = [];
  class FakeWebSocket {
    sent = [];
    closed = false;
    constructor(url) {
      this.url = url;
      sockets.push(this);
    }
    send(data) {
      this.sent.push(JSON.parse(data));
    }
    close() {
      this.closed = true;
    }
    /** The line is there, and the server has not said a word yet. */
    connects() {
      this.onopen();
    }
    opens() {
      this.connects();
      this.says({ type: "hello", models: [] });
    }
    says(frame) {
      this.onmessage({ data: JSON.stringify(frame) });
    }
    drops(code = 1006) {
      this.onclose({ code });
    }
    /** Frames of a type that the page sent over this socket. */
    heard(type) {
      return this.sent.filter((frame) => frame.type === type);
    }
  }
  return { sockets, WebSocket: FakeWebSocket, get last() { return sockets.at(-1); } };
}

/** localStorage: what is kept are its own keys, the methods are not. */
export class FakeStorage {
  getItem(key) {
    return Object.hasOwn(this, key) ? this[key] : null;
  }
  setItem(key, value) {
    this[key] = String(value);
  }
  removeItem(key) {
    delete this[key];
  }
}

export function message(id, parent, role, text, more = {}) {
  return {
    id, parent, role, text, status: "complete", model: "", run: null,
    parts: [{ type: "text", text }], created_at: "2026-11-20T10:00:00Z", chosen: 0, ...more,
  };
}

export function conversation(id, more = {}) {
  return {
    id, url: `/c/${id}`, title: "", model: "tiny", version: 1, running: [],
    folder: null, tags: [], pinned: false, archived: false,
    created_at: "2026-11-20T10:00:00Z", updated_at: "2026-11-20T10:00:00Z", ...more,
  };
}
