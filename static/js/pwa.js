// @ts-check
/** The service worker: keeps the interface at hand, and says when a newer one is there. */

const ASK_AGAIN_MS = 15 * 60_000;

/**
 * @param {(reload: () => void) => void} onUpdate a new version waits; `reload` shows it
 */
export async function keepShell(onUpdate) {
  const workers = navigator.serviceWorker; // absent on plain http hosts
  if (!workers) return;
  let isReloading = false;
  workers.addEventListener("controllerchange", () => isReloading && location.reload());
  try {
    const registration = await workers.register("/service-worker.js", { updateViaCache: "none" });
    const tell = () => {
      if (!registration.waiting || !workers.controller) return;
      onUpdate(() => {
        isReloading = true;
        registration.waiting?.postMessage({ type: "take-over" });
      });
    };
    registration.addEventListener("updatefound", () => {
      registration.installing?.addEventListener("statechange", tell);
    });
    tell();
    askNowAndThen(registration);
  } catch {
    return; // private windows may forbid it; all else works
  }
}

/** @param {ServiceWorkerRegistration} registration */
function askNowAndThen(registration) {
  let askedAt = Date.now();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || Date.now() - askedAt < ASK_AGAIN_MS) return;
    askedAt = Date.now();
    registration.update().catch(() => {}); // offline: later
  });
}
