// @ts-check
/** What the system tells while nobody looks at the page; loaded for those who want it (settings.js). */

const TITLE = "Vitrine";

/**
 * @param {string} words
 * @param {() => void} open show what it is about
 */
export async function notify(words, open) {
  if (globalThis.Notification?.permission !== "granted") return;
  const about = { body: words, tag: words }; // of several tabs one is seen
  const told = made(about);
  if (!told) return (await navigator.serviceWorker?.getRegistration())?.showNotification(TITLE, about);
  told.addEventListener("click", () => {
    window.focus();
    told.close();
    open();
  });
}

/** Chrome for Android throws: there only a service worker tells. @param {NotificationOptions} about */
function made(about) {
  try {
    return new Notification(TITLE, about);
  } catch {
    return null;
  }
}
