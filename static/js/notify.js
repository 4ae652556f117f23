// @ts-check
/** What the system tells while nobody looks at the page; loaded for those who want it (settings.js). */

/**
 * @param {string} words
 * @param {() => void} open show what it is about
 */
export function notify(words, open) {
  if (globalThis.Notification?.permission !== "granted") return;
  const told = new Notification("Vitrine", { body: words, tag: words }); // of several tabs one is seen
  told.addEventListener("click", () => {
    window.focus();
    told.close();
    open();
  });
}
