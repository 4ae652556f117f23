// @ts-check
/**
 * Shows a page or a picture that an answer has written, in a frame without an origin and without a
 * network (chat/sandboxes.py): its scripts run there, and nothing of it loads from elsewhere or leads
 * there. It is another document at each showing, so that nothing lives on that is not seen.
 */

import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";

/** In the page itself, before anything of it: says what the frame has refused. */
const WATCH = `<script>(() => {
  const tell = () => parent.postMessage({ type: "refused" }, "*");
  addEventListener("securitypolicyviolation", tell);
  addEventListener("click", (event) => {
    const href = event.target.closest?.("a[href]")?.getAttribute("href") ?? "#";
    if (href.startsWith("#")) return;
    event.preventDefault();
    tell();
  }, true);
})()</${"script"}>`;
const AROUND_PICTURE = "<style>body{margin:0;min-height:100vh;display:grid;place-items:center}svg{max-width:100%}</style>";

/**
 * The whole document that is shown for a block. Pure.
 * @param {string} language of the block: html or svg
 * @param {string} text
 */
export function documentOf(language, text) {
  const type = /^\s*<!doctype[^>]*>/i.exec(text)?.[0] ?? "";
  const body = language === "svg" ? AROUND_PICTURE + text : text.slice(type.length);
  return `${(language === "html" && type.trim()) || "<!doctype html>"}${WATCH}${body}`;
}

/**
 * Show what a block of code writes in the place of the code, or the code again.
 * @param {Element} button
 * @param {Element} frame of the block
 */
export function togglePreview(button, frame) {
  const shown = frame.querySelector(".preview");
  if (shown) shown.remove();
  else frame.append(previewOf(find(frame, ".code__language").textContent.toLowerCase(), find(frame, "code").textContent));
  find(frame, "pre").hidden = !shown;
  find(frame, "[data-full-screen]").hidden = Boolean(shown);
  button.setAttribute("aria-pressed", String(!shown));
}

/** @param {Element} frame of a block whose preview is shown */
export function fillScreen(frame) {
  find(frame, ".preview__page").requestFullscreen().catch(() => {}); // where there is none, nothing is lost
}

/**
 * @param {string} language
 * @param {string} text
 */
function previewOf(language, text) {
  const box = /** @type {HTMLIFrameElement} */ (element("iframe", {
    class: "preview__page", sandbox: "allow-scripts allow-forms", src: "/sandbox/preview",
    title: gettext("Preview"), referrerpolicy: "no-referrer", allow: "fullscreen 'self'",
  }));
  const note = element("p", { class: "preview__note", role: "status" });
  let isSent = false;
  const listen = (/** @type {MessageEvent} */ { source, data }) => {
    if (!box.isConnected) removeEventListener("message", listen);
    if (source !== box.contentWindow) return;
    if (data?.type === "ready" && !isSent) {
      isSent = true; // the page itself could say it again
      box.contentWindow?.postMessage({ page: documentOf(language, text) }, "*"); // it has no origin to name
    }
    if (data?.type === "refused") setText(note, gettext("A preview loads nothing from elsewhere, and leads nowhere."));
  };
  addEventListener("message", listen);
  return element("div", { class: "preview" }, [box, note]);
}
