// Keeps the files of the interface, which carry their hashes and so are never stale, and one page for
// when there is no connection. Pages and data come from the server, or not at all: but for the chats of
// somebody who wants them kept in this browser (static/js/kept-chats.js), if the server does not answer.
const CACHE = "vitrine-{{ version }}";
const SHELL = {{ shell|safe }};
const OFFLINE = SHELL[0];
const CHATS = "vitrine-chats-";
const SCRIPTS = SHELL.filter((file) => /\/js\/[\w-]+\.[0-9a-f]{12}\.js$/.test(file)); // a page's import map names them
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

// A notice that a page could not make itself (static/js/notify.js).
addEventListener("notificationclick", (event) => {
  event.notification.close();
  const pages = clients.matchAll({ type: "window", includeUncontrolled: true });
  event.waitUntil(pages.then(([page]) => (page ? page.focus() : clients.openWindow("/"))));
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin !== location.origin || request.method !== "GET") return;
  if (request.mode === "navigate" && request.destination === "document") {
    event.respondWith(pageOf(request, pathname));
  } else if (CHAT_DATA.test(pathname) && request.cache !== "no-store") {
    event.respondWith(chatOf(request, pathname));
  } else if (HAS_HASH.test(pathname)) {
    event.respondWith(fromCacheFirst(request));
  }
});

// A proxy says so where the server behind it is down; what the server says itself of such a kind is JSON.
async function fromServer(request) {
  const response = await fetch(request);
  const isOfProxy = !response.headers.get("Content-Type")?.includes("json");
  if (isOfProxy && response.status >= 502 && response.status <= 504) throw new Error("the server does not answer");
  return response;
}

async function pageOf(request, pathname) {
  try {
    const page = await fromServer(request);
    // Who sees it is not signed in: who is, is led away from it.
    if (page.ok && pathname.startsWith("/accounts/login/")) await forgetChats();
    return page;
  } catch {
    return (await keptPage(pathname)) ?? kept(OFFLINE);
  }
}

async function keptPage(pathname) {
  const isChat = pathname.startsWith("/c/");
  if (pathname !== "/" && !(isChat && (await keptOfChats(`/api/conversations/${pathname.slice(3)}`)))) return undefined;
  return keptOfChats("/");
}

async function chatOf(request, pathname) {
  try {
    const response = await fromServer(request);
    if (response.status === 404) await forgetChat(pathname); // deleted, perhaps elsewhere
    return response;
  } catch {
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

async function removeOthers() {
  const names = await caches.keys();
  const old = names.filter((name) => name !== CACHE && !name.startsWith(CHATS));
  await Promise.all(old.map((name) => caches.delete(name)));
  const page = await keptOfChats("/");
  const source = page ? await page.text() : "";
  if (!SCRIPTS.every((file) => source.includes(file))) await forgetChat("/"); // its files are gone
}

async function namesOfChats() {
  return (await caches.keys()).filter((name) => name.startsWith(CHATS));
}

async function cachesOfChats() {
  return Promise.all((await namesOfChats()).map((name) => caches.open(name)));
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
  await Promise.all((await namesOfChats()).map((name) => caches.delete(name)));
}
