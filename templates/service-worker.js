// Keeps the files of the interface, which carry their hashes and so are never stale, and one page for
// when there is no connection. Pages and data always come from the server, or not at all.
const CACHE = "vitrine-{{ version }}";
const SHELL = {{ shell|safe }};
const OFFLINE = SHELL[0];
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
    event.respondWith(fetch(request).catch(() => kept(OFFLINE)));
  } else if (HAS_HASH.test(pathname)) {
    event.respondWith(fromCacheFirst(request));
  }
});

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
  await Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name)));
}
