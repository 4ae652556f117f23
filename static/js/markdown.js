// @ts-check
/**
 * The only place that makes HTML. markdown-it escapes all raw HTML, DOMPurify has the last word on
 * its result, and what we add afterwards (copy buttons, hosts of links) is built as DOM.
 * Nothing here loads anything: an image is shown as a link to it.
 */

import markdownIt from "#vendor/markdown-it.js";
import DOMPurify from "#vendor/purify.js";

import { element, icon } from "./dom.js";
import { BIDI_IN_CODE, BIDI_IN_PROSE, codePointName, hostOf, withoutTags } from "./text-safety.js";

/** @typedef {Record<string, any>} References link definitions, as markdown-it keeps them */

const MAX_HIGHLIGHTED_CHARS = 50_000;
const SANITISED = {
  RETURN_DOM_FRAGMENT: true,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_TAGS: (
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th" +
    " thead tr ul #text"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "start"],
};

const markdown = markdownIt({ html: false, linkify: true, highlight: highlighted });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.renderer.rules.image = imageAsLink;
markdown.core.ruler.push("align_by_class", alignByClass);

/** @type {any} highlight.js, once a code block has asked for it */
let highlighter = null;

export function highlighterIsReady() {
  return highlighter !== null;
}

export async function loadHighlighter() {
  highlighter = (await import("#vendor/highlight.js")).default;
}

/**
 * The lines on which the top-level blocks of `text` begin.
 * @param {string} text
 * @returns {number[]}
 */
export function blockStarts(text) {
  /** @type {any[]} */
  const tokens = markdown.parse(text, {});
  return tokens
    .filter((token) => token.level === 0 && token.nesting >= 0 && token.map)
    .map((token) => token.map[0]);
}

/**
 * HTML that is not sanitised yet: for `toFragment` and for comparing renderings.
 * @param {string} text
 * @param {References} [references] known ones; those that the text defines are added
 */
export function toHtml(text, references = {}) {
  return markdown.render(withoutTags(text), { references });
}

/**
 * HTML of `toHtml` as safe DOM, with the furniture of code blocks, tables and links.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function toFragment(html) {
  if (!html) return document.createDocumentFragment();
  const fragment = /** @type {any} */ (DOMPurify).sanitize(html, SANITISED);
  for (const code of fragment.querySelectorAll("pre > code")) frameCode(code);
  for (const table of fragment.querySelectorAll("table")) frameTable(table);
  for (const link of fragment.querySelectorAll("a")) nameHost(link);
  showBidi(fragment);
  return fragment;
}

// --- rules of markdown-it --------------------------------------------------------------------

/**
 * @param {string} code
 * @param {string} language
 */
function highlighted(code, language) {
  if (!highlighter?.getLanguage(language) || code.length > MAX_HIGHLIGHTED_CHARS) return "";
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}

/**
 * A remote image would tell its host that, and what, somebody reads.
 * @param {any[]} tokens
 * @param {number} index
 */
function imageAsLink(tokens, index) {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index];
  const words = `Image: ${token.content || "no description"}`;
  const source = token.attrGet("src") ?? "";
  if (isInLink(tokens, index) || !hostOf(source)) return `<span>${escapeHtml(words)}</span>`;
  return `<a class="image-link" href="${escapeHtml(source)}">${escapeHtml(words)}</a>`;
}

/**
 * @param {any[]} tokens
 * @param {number} index
 */
function isInLink(tokens, index) {
  const types = tokens.slice(0, index).map((token) => token.type);
  return types.lastIndexOf("link_open") > types.lastIndexOf("link_close");
}

/**
 * markdown-it aligns table cells by style attributes, which our policy forbids.
 * @param {any} state
 */
function alignByClass(state) {
  for (const token of /** @type {any[]} */ (state.tokens)) {
    const align = token.attrGet?.("style")?.match(/text-align:(center|right)/)?.[1];
    if (align) token.attrs = [["class", `align-${align}`]];
    else if (token.attrGet?.("style")) token.attrs = null;
  }
}

// --- furniture -------------------------------------------------------------------------------

/** @param {HTMLElement} code */
function frameCode(code) {
  const pre = /** @type {HTMLElement} */ (code.parentElement);
  const language = code.className.match(/language-(\S+)/)?.[1] ?? "";
  const button = element("button", { type: "button", class: "code__copy", "data-copy-code": "" }, [
    icon("copy"), element("span", {}, ["Copy"]),
  ]);
  const bar = element("div", { class: "code__bar" }, [
    element("span", { class: "code__language" }, [language || "text"]), button,
  ]);
  const frame = element("div", { class: "code" }, [bar]);
  pre.replaceWith(frame);
  for (const [name, value] of Object.entries(scrollable(`Code, ${language || "text"}`))) {
    pre.setAttribute(name, value);
  }
  frame.append(pre);
}

/** @param {HTMLElement} table */
function frameTable(table) {
  const frame = element("div", { class: "table", ...scrollable("Table") });
  table.replaceWith(frame);
  frame.append(table);
}

/**
 * What scrolls sideways has to be reachable by keyboard.
 * @param {string} label
 */
function scrollable(label) {
  return { tabindex: "0", role: "group", "aria-label": label };
}

/** @param {HTMLAnchorElement} link */
function nameHost(link) {
  const href = link.getAttribute("href") ?? "";
  const host = hostOf(href);
  if (href.startsWith("mailto:")) return;
  if (!host) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
  link.setAttribute("title", link.href);
  if (!link.textContent?.includes(host)) link.dataset.host = host;
}

/** @param {DocumentFragment} fragment */
function showBidi(fragment) {
  if (!fragment.textContent?.match(BIDI_IN_CODE)) return;
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const texts = [];
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
  for (const text of texts) {
    const pattern = text.parentElement?.closest("code, a") ? BIDI_IN_CODE : BIDI_IN_PROSE;
    const pieces = text.data.split(new RegExp(`(${pattern.source})`));
    if (pieces.length > 1) text.replaceWith(...pieces.map((piece, i) => (i % 2 ? mark(piece) : piece)));
  }
}

/** @param {string} character */
function mark(character) {
  const name = codePointName(character);
  return element("span", { class: "bidi-mark", title: "Hidden direction mark", "data-name": name });
}
