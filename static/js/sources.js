// @ts-check
/**
 * What a question is answered from, and what was found in it. Pure functions on values of docs/socket.md.
 *
 * @typedef {{id: string, name: string}} Named
 * @typedef {{collections: Named[], documents: Named[]}} Sources
 * @typedef {{collections: string[], documents: string[]}} SourceIds
 * @typedef {{number: number, document: string, version: string, collection: string, name: string,
 *   start: number, end: number, first_page: number, last_page: number, page_label: string,
 *   context: string, chunks: number[], is_sample?: boolean}} Excerpt no `chunks`: its document is shown whole
 * @typedef {{query: string, excerpts: Excerpt[], is_whole: boolean,
 *   num_waiting?: number, num_failed?: number}} Found of the documents that were picked how many were not read yet, or could not be
 * @typedef {{excerpt: Excerpt, answer: string}} Cited an excerpt, and the answer that it was found for
 */

import { gettext, ngettext } from "./i18n.js";

/**
 * @param {Sources} sources
 * @returns {SourceIds}
 */
export function idsOf({ collections, documents }) {
  const id = (/** @type {Named} */ one) => one.id;
  return { collections: collections.map(id), documents: documents.map(id) };
}

/**
 * What the last message of a path can cite, by number.
 * @param {{id: string, found?: Found | null}[]} path
 * @returns {Map<number, Cited>}
 */
export function citedBy(path) {
  /** @type {Map<number, Cited>} */
  const numbers = new Map();
  for (const { id, found } of path) {
    for (const excerpt of found?.excerpts ?? []) numbers.set(excerpt.number, { excerpt, answer: id });
  }
  return numbers;
}

/**
 * Where an excerpt is in its document: the page, if there are several, and the last heading above it.
 * @param {{page_label: string, context: string}} excerpt
 */
export function placeOf({ page_label: page, context }) {
  const heading = context.split("\n").map((line) => line.trim()).filter(Boolean).at(-1) ?? "";
  return { page: page && gettext("p. %(page)s", { page }), heading };
}

/**
 * What is listed under an answer: what it cites first, then what it was shown besides. Of documents that
 * were read whole, what is not cited is one entry each.
 * @param {Found} found
 * @param {string} answer
 * @param {number[]} cited
 * @param {Map<number, Cited>} numbers
 * @returns {{excerpts: Cited[], whole: Excerpt[]}}
 */
export function rowOf(found, answer, cited, numbers) {
  const first = cited.flatMap((number) => numbers.get(number) ?? []).sort((a, b) => a.excerpt.number - b.excerpt.number);
  const isWhole = (/** @type {Excerpt} */ { chunks }) => found.is_whole || !chunks.length;
  const others = found.excerpts.filter((excerpt) => !cited.includes(excerpt.number) && !isWhole(excerpt));
  const whole = new Map(found.excerpts.filter(isWhole).map((excerpt) => [excerpt.document, excerpt]));
  return { excerpts: [...first, ...others.map((excerpt) => ({ excerpt, answer }))], whole: [...whole.values()] };
}

/**
 * What is said of documents that were picked, and of which there was nothing to read.
 * @param {Found} found
 */
export function unreadWords({ num_waiting: waiting = 0, num_failed: failed = 0 }) {
  return [
    ...(waiting ? [ngettext("%(n)s document had not been read yet.", "%(n)s documents had not been read yet.", waiting)] : []),
    ...(failed ? [ngettext("%(n)s document could not be read.", "%(n)s documents could not be read.", failed)] : []),
  ];
}
