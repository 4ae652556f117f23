// @ts-check
/** Who presses again while the server is at it would do a thing twice: forms of whole pages are sent once. */

const PATIENCE_MS = 10_000; // then somebody has stopped it, or it got lost

/** @type {WeakMap<EventTarget, number>} form → when it was sent */
let sent = new WeakMap();

document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (event.defaultPrevented || form.method !== "post") return; // by what sends it itself
  if (event.timeStamp - (sent.get(form) ?? -PATIENCE_MS) < PATIENCE_MS) event.preventDefault();
  else sent.set(form, event.timeStamp);
});
addEventListener("pageshow", () => (sent = new WeakMap())); // as it was left, by "back"
