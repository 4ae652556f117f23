// @ts-check
/** What was found in documents for an answer: each passage, how well it fits, and why it was shown or not. */

import { viewerUrl } from "./document-links.js";
import { element, icon } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";
import { droppedWords, figuresOf, rowsOf, unsearchedOf } from "./retrieval-words.js";
import { placeOf } from "./sources.js";

const GONE = gettext("This passage was deleted, or is no longer shared with you.");

/**
 * @typedef {import("./retrieval-words.js").Retrieval} Retrieval
 *
 * @param {Retrieval} told of GET /api/messages/<id>/retrieval
 * @param {(chunks: number[]) => void} askWithout ask again, and leave these out
 * @returns {HTMLElement}
 */
export function renderRetrieval(told, askWithout) {
  const { query, is_whole, excerpts, candidates, without, prompt } = told;
  const figure = ngettext("%(n)s passage shown", "%(n)s passages shown", excerpts.length);
  const root = element("section", { class: "retrieval" }, [
    element("h3", {}, [gettext("Documents"), element("span", {}, [figure])]),
    element("p", { class: "retrieval__query" }, [element("span", {}, [gettext("Looked for")]), element("q", { dir: "auto" }, [query])]),
  ]);
  if (is_whole) root.append(note(gettext("The documents are short: all of them were shown.")));
  else if (!candidates.length && !excerpts.length) root.append(note(gettext("Nothing was found.")));
  const list = element("ol", { class: "retrieval__rows" });
  const again = (/** @type {number} */ chunk) => askWithout([...new Set([...without, chunk])]);
  list.append(...unsearchedOf(told).map(renderExcerpt));
  if (!is_whole) list.append(...rowsOf(told).map((row) => renderRow(row, excerpts, again)));
  if (list.childElementCount) root.append(list);
  if (prompt) root.append(disclosure(gettext("What the model read of it"), element("pre", { class: "retrieval__prompt", dir: "auto", tabindex: "0" }, [prompt])));
  return root;
}

/** @param {string} words */
function note(words) {
  return element("p", { class: "trace__note" }, [words]);
}

/** @param {import("./retrieval-words.js").Told} excerpt */
function renderExcerpt(excerpt) {
  const { page, heading } = placeOf(excerpt);
  const place = [page, heading].filter(Boolean).join(" · ");
  return element("li", { class: "passage-row" }, [
    head(String(excerpt.number), excerpt.name, viewerUrl(excerpt)),
    ...(place ? [element("p", { class: "passage-row__about", dir: "auto" }, [place])] : []),
    passage(excerpt.text),
  ]);
}

/**
 * @param {import("./retrieval-words.js").Row} row
 * @param {import("./retrieval-words.js").Told[]} excerpts
 * @param {(chunk: number) => void} again
 */
function renderRow({ number, candidate }, excerpts, again) {
  const { chunk, dropped, name, page, text } = candidate;
  const excerpt = excerpts.find((one) => one.number === number);
  const label = excerpt ? placeOf(excerpt).page : page > 1 ? gettext("p. %(page)s", { page }) : "";
  const about = [label, dropped && droppedWords(dropped)].filter(Boolean).join(" · ");
  const figures = element("dl", { class: "passage-row__figures numbers" });
  for (const { words, figure } of figuresOf(candidate)) {
    figures.append(element("div", {}, [element("dt", {}, [words]), element("dd", {}, [figure])]));
  }
  const row = element("li", { class: "passage-row", ...(dropped ? { "data-dropped": dropped } : {}) }, [
    head(number ? String(number) : "", name ?? gettext("Gone"), name ? viewerUrl(candidate) : null),
    ...(about ? [element("p", { class: "passage-row__about" }, [about])] : []),
    figures,
    passage(text),
  ]);
  if (!dropped) row.append(withoutButton(() => again(chunk), number));
  return row;
}

/**
 * @param {string} number
 * @param {string} name
 * @param {string | null} href
 */
function head(number, name, href) {
  const words = href ? element("a", { href, target: "_blank", rel: "noopener", dir: "auto" }, [name]) : element("span", {}, [name]);
  const mark = number ? [element("span", { class: "source__number" }, [number])] : [];
  return element("p", { class: "passage-row__head" }, [...mark, words]);
}

/** @param {string | null} text */
function passage(text) {
  if (text === null) return element("p", { class: "passage-row__about" }, [GONE]);
  return disclosure(gettext("What it says"), element("blockquote", { class: "passage-row__text", dir: "auto" }, [text.trim()]));
}

/**
 * @param {string} words
 * @param {HTMLElement} content
 */
function disclosure(words, content) {
  return element("details", { class: "passage-row__more" }, [element("summary", {}, [words, icon("chevron-down")]), content]);
}

/**
 * @param {() => void} act
 * @param {number | null} number
 */
function withoutButton(act, number) {
  const about = number ? { "aria-label": gettext("Ask again without this passage (%(n)s)", { n: number }) } : {};
  const button = element("button", { type: "button", class: "small-button passage-row__without", ...about }, [
    icon("rotate-cw"), gettext("Ask again without this passage"),
  ]);
  button.addEventListener("click", act);
  return button;
}
