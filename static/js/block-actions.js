// @ts-check
/** What the small buttons of code, tables and diagrams do. */

import { toCsv } from "./csv.js";
import { copyText, drawerOf, element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { remember } from "./preferences.js";
import { rowsOf } from "./table-view.js";

const DONE_MS = 1600;
/** Names of languages and the ends of their files, where they differ. */
const SUFFIXES = new Map(Object.entries({
  python: "py", javascript: "js", typescript: "ts", ruby: "rb", rust: "rs", bash: "sh", shell: "sh",
  markdown: "md", csharp: "cs", "c++": "cpp", kotlin: "kt", plaintext: "txt", text: "txt", yaml: "yml", perl: "pl",
}));

/**
 * Do what a click on a block's button asks for.
 * @param {Element} target
 */
export function actOnBlock(target) {
  const button = target.closest(".bar-button");
  const frame = button?.closest(".code, .table");
  if (!button || !frame) return;
  if (button.matches("[data-copy-code]")) copied(button, find(frame, "code").textContent);
  else if (button.matches("[data-copy-table]")) copied(button, toCsv(rowsOf(find(frame, "table"))));
  else if (button.matches("[data-wrap-code]")) wrap(button, frame);
  else if (button.matches("[data-download-code]")) downloadCode(frame);
  else if (button.matches("[data-download-diagram]")) downloadDiagram(frame);
  else if (button.matches("[data-preview-code]")) onPreview(({ togglePreview }) => togglePreview(button, frame));
  else if (button.matches("[data-full-screen]")) onPreview(({ fillScreen }) => fillScreen(frame));
  else if (button.matches("[data-open-beside]")) button.dispatchEvent(new CustomEvent("artifact", { bubbles: true }));
  else if (button.matches("[data-show-source]")) showSource(button, frame);
}

/** @param {(preview: typeof import("./preview.js")) => void} work */
function onPreview(work) {
  import("./preview.js").then(work, () => {}); // offline: the next click tries again
}

/**
 * Copies what is seen: of code, without hidden direction marks.
 * @param {Element} button
 * @param {string} text
 */
async function copied(button, text) {
  const told = await copyText(text).then(() => gettext("Copied"), ({ message }) => message);
  const words = find(button, "span");
  const before = button.getAttribute("data-words") ?? words.textContent;
  button.setAttribute("data-words", before);
  setText(words, told);
  setTimeout(() => setText(words, before), DONE_MS);
}

/**
 * @param {Element} button
 * @param {Element} frame
 */
function wrap(button, frame) {
  const isWrapped = frame.toggleAttribute("data-wrapped");
  button.setAttribute("aria-pressed", String(isWrapped));
  remember("wrap-code", isWrapped ? "yes" : null);
}

/** @param {Element} frame */
function downloadCode(frame) {
  const language = find(frame, ".code__language").textContent.toLowerCase();
  const suffix = SUFFIXES.get(language) ?? (/^[a-z0-9]{1,8}$/.test(language) ? language : "txt");
  download(`code.${suffix}`, new Blob([find(frame, "code").textContent], { type: "text/plain" }));
}

/** @param {Element} frame */
function downloadDiagram(frame) {
  const isDark = getComputedStyle(find(frame, ".diagram__light")).display === "none";
  save("diagram.svg", find(frame, isDark ? ".diagram__dark" : ".diagram__light").src);
}

/**
 * @param {Element} button
 * @param {Element} frame
 */
function showSource(button, frame) {
  const isSource = button.getAttribute("aria-pressed") !== "true";
  /** @type {any} */ (drawerOf(frame)).showSource(isSource);
}

/**
 * @param {string} name
 * @param {Blob} blob
 */
export function download(name, blob) {
  const href = URL.createObjectURL(blob);
  save(name, href);
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/**
 * @param {string} name
 * @param {string} href
 */
function save(name, href) {
  element("a", { href, download: name }).click();
}
