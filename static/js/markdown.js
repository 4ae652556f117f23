// @ts-check
/**
 * Markdown as nodes. markdown-it escapes all raw HTML, sanitise.js has the last word on its result,
 * and what we add afterwards (the bars of code blocks, hosts of links) is built as DOM.
 * Nothing here loads anything: an image is a button that names its host.
 */

import markdownIt from "#vendor/markdown-it.js";

import { showBidi } from "./bidi.js";
import { frameCode } from "./code-view.js";
import { frameDiagram, isDiagram } from "./diagram-view.js";
import { holdImage, nameHost } from "./foreign.js";
import { gettext } from "./i18n.js";
import { mathSyntax } from "./math-syntax.js";
import { frameMath } from "./math-view.js";
import { sanitised } from "./sanitise.js";
import { frameTable } from "./table-view.js";
import { hostOf, withoutTags } from "./text-safety.js";

/** @typedef {Record<string, any>} References link definitions, as markdown-it keeps them */

/** Each says by itself whether it reads from the right. */
const BLOCKS = "p, h1, h2, h3, h4, h5, h6, ul, ol, blockquote, table";

const markdown = markdownIt({ html: false, linkify: true });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.use(mathSyntax);
markdown.renderer.rules.image = imageAsLink;
markdown.core.ruler.push("align_by_class", alignByClass);

/**
 * The lines on which the top-level blocks of a growing `text` begin, and the last block.
 * @param {string} text
 * @returns {{starts: number[], last: {type: string, markup: string, info: string} | undefined}}
 */
export function outline(text) {
  /** @type {any[]} */
  const tokens = markdown.parse(text, { isOpen: true });
  const blocks = tokens.filter((token) => token.level === 0 && token.nesting >= 0 && token.map);
  if (blocks.at(-1)?.meta?.isOpen) blocks.pop(); // it may turn out to go on what stands before it
  return { starts: blocks.map((token) => token.map[0]), last: blocks.at(-1) };
}

/**
 * The blocks of code in a text, as they are shown.
 * @param {string} text
 * @returns {{language: string, text: string, isClosed: boolean}[]} a block that is not closed may grow
 */
export function codeBlocks(text) {
  /** @type {any[]} */
  const tokens = markdown.parse(withoutTags(text), {});
  return tokens.filter(({ type }) => type === "fence").map(({ info, content, map }) => ({
    language: markdown.utils.unescapeAll(info).trim().split(/\s+/)[0],
    text: content,
    isClosed: map[1] - map[0] - 1 > (content ? content.replace(/\n$/, "").split("\n").length : 0),
  }));
}

/**
 * HTML that is not sanitised yet: for `toFragment` and for comparing renderings.
 * @param {string} text
 * @param {References} [references] known ones; those that the text defines are added
 * @param {boolean} [isOpen] more of the text will come: a formula without end is one already
 */
export function toHtml(text, references = {}, isOpen = false) {
  return markdown.render(withoutTags(text), { references, isOpen });
}

/**
 * HTML of `toHtml` as safe DOM, with the furniture of code blocks, tables, formulas and links.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function toFragment(html) {
  const fragment = sanitised(html);
  for (const node of [...fragment.childNodes]) {
    if (node instanceof Text && !node.data.trim()) node.remove(); // the ends of lines between blocks
  }
  for (const block of fragment.querySelectorAll(BLOCKS)) block.setAttribute("dir", "auto");
  for (const math of fragment.querySelectorAll(".math")) frameMath(/** @type {any} */ (math));
  for (const code of fragment.querySelectorAll("pre > code")) {
    if (isDiagram(code)) frameDiagram(/** @type {HTMLElement} */ (code));
    else frameCode(/** @type {HTMLElement} */ (code));
  }
  for (const table of fragment.querySelectorAll("table")) frameTable(table);
  for (const link of fragment.querySelectorAll("a")) {
    if (link.matches(".image-link")) holdImage(link);
    else nameHost(link);
  }
  showBidi(fragment);
  return fragment;
}

// --- rules of markdown-it --------------------------------------------------------------------

/**
 * A remote image would tell its host that, and what, somebody reads.
 * @param {any[]} tokens
 * @param {number} index
 */
function imageAsLink(tokens, index) {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index];
  const words = token.content || gettext("no description");
  const source = token.attrGet("src") ?? "";
  if (isInLink(tokens, index) || !hostOf(source)) return `<span>${escapeHtml(gettext("Image: %(about)s", { about: words }))}</span>`;
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
