// @ts-check
/**
 * Shows a page or a picture that an answer has written, in a frame without an origin and without a
 * network (chat/sandboxes.py): its scripts run there, and nothing of it loads from elsewhere or leads
 * there. It is another document at each showing, so that nothing lives on that is not seen.
 *
 * Event: "mend" Fault, of the preview, where the reader wants a fault of the page mended.
 *
 * @typedef {{message: string, line: number}} Fault line of the text, from 1; 0: not known
 */

import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";

const MAX_FAULT_CHARS = 300;
/**
 * In the page itself, before anything of it: says what the frame has refused, and what fails. The browser counts
 * the lines of each script from its own beginning.
 */
const WATCH = `<script>(() => {
  const tell = () => parent.postMessage({ type: "refused" }, "*");
  const fail = (message, line) => {
    parent.postMessage({ type: "failed", message: String(message), line, script: document.currentScript?.text }, "*");
  };
  addEventListener("securitypolicyviolation", tell);
  addEventListener("error", ({ message, lineno }) => message && fail(message, lineno));
  addEventListener("unhandledrejection", ({ reason }) => fail(reason?.message ?? reason, 0));
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
export function previewOf(language, text) {
  const box = /** @type {HTMLIFrameElement} */ (element("iframe", {
    class: "preview__page", sandbox: "allow-scripts allow-forms", src: "/sandbox/preview",
    title: gettext("Preview"), referrerpolicy: "no-referrer", allow: "fullscreen 'self'",
  }));
  const note = element("p", { class: "preview__note", role: "status" });
  const root = element("div", { class: "preview" }, [box, note]);
  let isSent = false;
  const listen = (/** @type {MessageEvent} */ { source, data }) => {
    if (!box.isConnected) removeEventListener("message", listen);
    if (source !== box.contentWindow) return;
    if (data?.type === "ready" && !isSent) {
      isSent = true; // the page itself could say it again
      box.contentWindow?.postMessage({ page: documentOf(language, text) }, "*"); // it has no origin to name
    }
    if (data?.type === "refused" && !root.dataset.fails) setText(note, gettext("A preview loads nothing from elsewhere, and leads nowhere."));
    if (data?.type === "failed" && !root.dataset.fails) tellFault(root, note, faultIn(text, data));
  };
  addEventListener("message", listen);
  return root;
}

/**
 * What a page says of a fault of its own, and on which line of its text; 0 where that is not known. It may say
 * anything. Pure.
 * @param {string} text
 * @param {{message?: unknown, line?: unknown, script?: unknown}} said
 * @returns {Fault}
 */
export function faultIn(text, { message, line, script }) {
  const start = typeof script === "string" && script ? text.indexOf(script) : -1;
  const numBefore = text.slice(0, Math.max(0, start)).split("\n").length - 1;
  const numLines = text.split("\n").length;
  const inText = start >= 0 && Number.isInteger(line) ? numBefore + Number(line) : 0;
  return { message: String(message).slice(0, MAX_FAULT_CHARS), line: inText > 0 && inText <= numLines ? inText : 0 };
}

/**
 * The first fault of a page: those that follow come from it as a rule.
 * @param {HTMLElement} root
 * @param {HTMLElement} note
 * @param {Fault} fault
 */
function tellFault(root, note, fault) {
  root.dataset.fails = "";
  setText(note, faultOf(fault));
  if (!document.querySelector("chat-composer")) return;
  const button = element("button", { type: "button", class: "bar-button preview__mend" }, [icon("wrench"), gettext("Ask to mend it")]);
  button.addEventListener("click", () => root.dispatchEvent(new CustomEvent("mend", { bubbles: true, detail: fault })));
  note.append(" ", button);
}

/**
 * @param {Fault} fault
 * @returns {string}
 */
export function faultOf({ message, line }) {
  return line > 0 ? gettext("The page fails in line %(line)s: %(message)s", { line, message }) : gettext("The page fails: %(message)s", { message });
}
