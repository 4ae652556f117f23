// @ts-check
/**
 * Chats that can be read without a connection, for whoever wants that of this browser (settings, Data).
 * What a page has shown lies in a cache of its own, under the address by which it is asked for, and the
 * service worker gives it out when the server does not answer. It goes at sign-out, when somebody else
 * signs in, and when a sign-in page is shown (templates/service-worker.js).
 */

import { hasEnded } from "./run-state.js";

export const CACHE = "vitrine-chats-"; // and whose; the service worker knows it too
const MOST_KEPT = 50;
const QUIET_MS = 1500;
const PAGE = "/";

/** @param {string} id */
const addressOf = (id) => `/api/conversations/${id}`;

/**
 * Forget what is kept of chats, but for those of one person.
 * @param {string} [user]
 */
export async function forgetChats(user) {
  for (const name of (await globalThis.caches?.keys()) ?? []) {
    if (name.startsWith(CACHE) && name !== CACHE + user) await caches.delete(name);
  }
}

/**
 * What is kept of a conversation: as GET /api/conversations/ID has it. Null: nothing, for it is not
 * whole or has no place on the server.
 * @param {import("./conversation-store.js").ConversationStore} store
 */
export function snapshot(store) {
  const { conversation, isTemporary, isBusy } = store;
  if (!conversation || isTemporary || isBusy) return null;
  const messages = [...store.messages.values()].filter(({ status }) => status !== "sending");
  return { conversation, messages: messages.map(({ key, ...message }) => message) };
}

/**
 * From now on keep what is shown.
 * @param {import("./session.js").ChatSession} session
 * @param {import("./sidebar.js").ChatSidebar} sidebar which lists what is kept while nobody else says
 * @param {string} user
 */
export async function keepChats(session, sidebar, user) {
  if (!globalThis.caches) return; // plain http: there is no worker either
  await forgetChats(user);
  const cache = await caches.open(CACHE + user);
  let timer = 0;
  let wasHere = false;
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => keep(cache, session.store), QUIET_MS);
  };
  session.on("opened", later);
  session.on("path", later);
  session.on("message", (id) => {
    const run = session.store.runs.get(session.store.shown(id)?.run ?? "");
    if (!run || hasEnded(run)) later();
  });
  session.on("deleted", (id) => cache.delete(addressOf(id)));
  session.on("subscribed", () => (wasHere = true));
  session.socket.on("state", (state) => {
    if (state === "waiting" && !wasHere) listKept(cache, sidebar);
  });
  later();
  await keepPage(cache);
}

/**
 * @param {Cache} cache
 * @param {import("./conversation-store.js").ConversationStore} store
 */
async function keep(cache, store) {
  const kept = snapshot(store);
  if (!kept) return;
  const headers = { "Content-Type": "application/json" };
  try {
    await cache.put(addressOf(kept.conversation.id), new Response(JSON.stringify(kept), { headers }));
    const addresses = (await chatsIn(cache)).slice(0, -MOST_KEPT); // the oldest first
    for (const address of addresses) await cache.delete(address);
  } catch {
    return; // the disk is full: then it is not kept
  }
}

/** @param {Cache} cache */
async function chatsIn(cache) {
  return (await cache.keys()).filter(({ url }) => new URL(url).pathname !== PAGE);
}

/**
 * The empty chat page, into which the worker's answer is put: of this visit, so that its files are
 * those that the worker keeps.
 * @param {Cache} cache
 */
async function keepPage(cache) {
  try {
    const page = await fetch(PAGE, { headers: { Accept: "text/html" } });
    if (page.ok && !page.redirected) await cache.put(PAGE, page);
  } catch {
    return; // no connection: the one of the last visit stays
  }
}

/**
 * The page's own list is as old as the page.
 * @param {Cache} cache
 * @param {import("./sidebar.js").ChatSidebar} sidebar
 */
async function listKept(cache, sidebar) {
  for (const address of await chatsIn(cache)) {
    const found = await cache.match(address);
    if (found) sidebar.update({ ...(await found.json()).conversation, running: [] });
  }
}
