// Keeps the files of the interface, which carry their hashes and so are never stale, and one page for
// when there is no connection. Pages and data come from the server, or not at all: but for the chats of
// somebody who wants them kept in this browser (static/js/kept-chats.js), if the server does not answer.
const CACHE = "vitrine-{{ version }}";
const SHELL = {{ shell|safe }};
const OFFLINE = SHELL[0];
const CHATS = "vitrine-chats-";
const CHAT_PAGE = /^\/(c\/[0-9a-f-]{36})?$/;
const CHAT_DATA = /^\/api\/conversations\/[0-9a-f-]{36}$/;
const HAS_HASH = /^\/static\/.+\.[0-9a-f]{12}\.\w+$/;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)));
});

addEventListener("activate", (event) => {
  event.waitUntil(removeOthers().then(() => clients.claim()));
});

// A new worker waits until the page says so: the old page may still fetch old files.
addEventListener("message", ({ data }) => data?.type === "take-over" && skipWaiting());

addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin !== location.origin || request.method !== "GET") return;
  if (request.mode === "navigate" && request.destination === "document") {
    if (pathname.startsWith("/accounts/login/")) event.waitUntil(forgetChats()); // nobody is signed in
    event.respondWith(fetch(request).catch(() => pageWithoutConnection(pathname)));
  } else if (CHAT_DATA.test(pathname)) {
    event.respondWith(fromServerFirst(request, pathname));
  } else if (HAS_HASH.test(pathname)) {
    event.respondWith(fromCacheFirst(request));
  }
});

async function pageWithoutConnection(pathname) {
  const page = CHAT_PAGE.test(pathname) && (await keptOfChats("/"));
  return page || kept(OFFLINE);
}

async function fromServerFirst(request, pathname) {
  try {
    const response = await fetch(request);
    if (response.status === 404) await forgetChat(pathname); // deleted, perhaps elsewhere
    return response;
  } catch (error) {
    return (await keptOfChats(pathname)) ?? Response.error();
  }
}

async function fromCacheFirst(request) {
  const found = await kept(request);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok && response.type === "basic") {
    const cache = await caches.open(CACHE);
    await cache.put(request, response.clone()).catch(() => {}); // full: then it is fetched again
  }
  return response;
}

function kept(request) {
  return caches.match(request, { ignoreVary: true });
}

// The page of a chat names files of its own version: the next visit keeps a new one.
async function removeOthers() {
  const names = await caches.keys();
  const old = names.filter((name) => name !== CACHE && !name.startsWith(CHATS));
  await Promise.all(old.map((name) => caches.delete(name)));
  await forgetChat("/");
}

async function cachesOfChats() {
  const names = (await caches.keys()).filter((name) => name.startsWith(CHATS));
  return Promise.all(names.map((name) => caches.open(name)));
}

async function keptOfChats(address) {
  for (const cache of await cachesOfChats()) {
    const found = await cache.match(address, { ignoreVary: true });
    if (found) return found;
  }
  return undefined;
}

async function forgetChat(address) {
  for (const cache of await cachesOfChats()) await cache.delete(address, { ignoreVary: true });
}

async function forgetChats() {
  const names = (await caches.keys()).filter((name) => name.startsWith(CHATS));
  await Promise.all(names.map((name) => caches.delete(name)));
}
