// @ts-check
/**
 * Chats that can be read without a connection, for whoever wants that of this browser (settings, Data).
 * What a page has shown lies in a cache of its own, under the address by which it is asked for, and the
 * service worker gives it out when the server does not answer. It goes at sign-out, when somebody else
 * signs in, and when a sign-in page is shown (templates/service-worker.js).
 */

import { copyOf } from "./kept-copy.js";
import { preference } from "./preferences.js";
import { hasEnded } from "./run-state.js";
import { onSignOut } from "./sign-out.js";

const CACHE = "vitrine-chats-"; // and whose; the service worker and sign-out.js know it too
const MOST_KEPT = 50;
const QUIET_MS = 1500;
const PAUSE_MS = 200;
const PAGE = "/";

/** @param {string} id */
const addressOf = (id) => `/api/conversations/${id}`;

/** The names of what is kept of chats in this browser; none over plain http. */
async function keptNames() {
  return ((await globalThis.caches?.keys()) ?? []).filter((name) => name.startsWith(CACHE));
}

/**
 * Whatever is kept of chats in this browser.
 * @param {string} [but] whose stay
 */
export async function forgetChats(but = "") {
  for (const name of await keptNames()) if (name !== CACHE + but) await caches.delete(name);
}

/** @param {string[]} ids of chats that are deleted */
export async function forgetDeleted(ids) {
  for (const name of await keptNames()) {
    const cache = await caches.open(name);
    for (const address of [...ids.map(addressOf), PAGE]) await cache.delete(address); // it lists them
  }
}

/** @type {KeptChats | null} */
let keeping = null;

/**
 * From now on keep what is shown, if its reader wants that.
 * @param {import("./session.js").ChatSession} session
 * @param {import("./sidebar.js").ChatSidebar} sidebar which lists what is kept while nobody else says
 */
export async function keepChats(session, sidebar) {
  if (!globalThis.caches) return; // plain http: there is no worker either
  const { user } = session;
  if (preference("keep-chats") !== user) return forgetChats(); // whoever was here before wanted it
  await forgetChats(user);
  if (keeping) return keeping.keep(); // it was wanted, and then not
  keeping = new KeptChats(session, sidebar, user);
  keeping.begin();
}

class KeptChats {
  #timer = 0;
  #pageTimer = 0;
  #wasHere = false;
  #isSignedOut = false;

  /**
   * @param {import("./session.js").ChatSession} session
   * @param {import("./sidebar.js").ChatSidebar} sidebar
   * @param {string} user
   */
  constructor(session, sidebar, user) {
    this.session = session;
    this.sidebar = sidebar;
    this.user = user;
  }

  begin() {
    const { session } = this;
    session.on("opened", () => this.#later());
    session.on("path", () => this.#later());
    session.on("message", (id) => {
      const run = session.store.runs.get(session.store.shown(id)?.run ?? "");
      if (!run || hasEnded(run)) this.#later();
    });
    session.on("deleted", async (id) => {
      await forgetDeleted([id]);
      this.#pageLater();
    });
    session.on("subscribed", () => this.#isBack());
    session.socket.on("state", (state) => {
      if (state === "signed-out") this.#isSignedOut = true;
      if (state === "waiting" && !this.#wasHere) this.#list();
    });
    onSignOut(() => (this.#isSignedOut = true));
    if (session.socket.state === "open") this.#isBack(); // it was wanted later than the page
    else this.keep();
  }

  /** What is shown now. */
  keep() {
    this.#later();
    this.#pageLater();
  }

  /**
   * Opened at each use: one that was deleted meanwhile (a sign-in page in another tab) would be written to
   * unseen, and one that is to stay deleted would be made again.
   * @returns {Promise<Cache | null>}
   */
  async #cache() {
    const isWanted = preference("keep-chats") === this.user && !this.#isSignedOut;
    return isWanted ? caches.open(CACHE + this.user) : null;
  }

  #isBack() {
    this.#isSignedOut = false;
    if (!this.#wasHere) this.#lookForDeleted();
    this.#wasHere = true;
    this.keep();
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#keep(), QUIET_MS);
  }

  async #keep() {
    const kept = copyOf(this.session.store);
    const cache = kept && (await this.#cache());
    if (!kept || !cache) return;
    const headers = { "Content-Type": "application/json" };
    try {
      await cache.put(addressOf(kept.conversation.id), new Response(JSON.stringify(kept), { headers }));
      for (const { request } of (await chatsIn(cache)).slice(0, -MOST_KEPT)) await cache.delete(request); // the oldest
    } catch {
      return; // the disk is full: then it is not kept
    }
  }

  #pageLater() {
    clearTimeout(this.#pageTimer);
    this.#pageTimer = window.setTimeout(() => this.#keepPage(), QUIET_MS);
  }

  /**
   * The empty chat page, into which the worker's answer is put: of this visit, so that its files are
   * those that the worker keeps.
   */
  async #keepPage() {
    try {
      const page = await fetch(PAGE, { headers: { Accept: "text/html" } });
      const cache = page.ok && !page.redirected ? await this.#cache() : null;
      await cache?.put(PAGE, page);
    } catch {
      return; // no connection: the one of the last visit stays
    }
  }

  /** The page's own list is as old as the page: what is kept beside it is shown too. */
  async #list() {
    const cache = await this.#cache();
    for (const { id, request } of cache ? await chatsIn(cache) : []) {
      if (this.sidebar.library.conversations.has(id)) continue;
      const found = await cache?.match(request);
      const conversation = found && (await found.json()).conversation;
      if (this.#wasHere) return; // the server has said what there is
      if (conversation) this.sidebar.update({ ...conversation, running: [] });
    }
  }

  /** Of those that are not listed some may have been deleted elsewhere: the worker drops them then. */
  async #lookForDeleted() {
    const cache = await this.#cache();
    for (const { id } of cache ? await chatsIn(cache) : []) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      if (!this.sidebar.library.conversations.has(id)) await fetch(addressOf(id)).catch(() => null);
    }
  }
}

/**
 * The oldest first.
 * @param {Cache} cache
 */
async function chatsIn(cache) {
  const requests = await cache.keys();
  return requests.flatMap((request) => {
    const { pathname } = new URL(request.url);
    return pathname === PAGE ? [] : [{ id: pathname.slice(addressOf("").length), request }];
  });
}
