// @ts-check
/**
 * What was found in documents for an answer, and why it was shown or not, in words. Pure functions.
 *
 * @typedef {{chunk: number, document: string, version: string, start: number, end: number, page: number,
 *   score: number, lexical_rank: number | null, coverage: number, vector_rank: number | null,
 *   cosine: number | null, relevance: number | null, dropped: string | null, name: string | null,
 *   text: string | null}} Candidate
 * @typedef {import("./sources.js").Excerpt & {text: string | null}} Told
 * @typedef {{query: string, is_whole: boolean, excerpts: Told[], candidates: Candidate[], without: number[],
 *   prompt: string}} Retrieval
 * @typedef {{number: number | null, candidate: Candidate}} Row `number`: it was shown, and is cited by it
 */

import { LOCALE, gettext } from "./i18n.js";
import { percent } from "./words.js";

const hundredths = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** @type {Record<string, string>} */
const DROPPED = {
  threshold: gettext("does not fit the question"),
  similar: gettext("says nothing new"),
  budget: gettext("no room"),
  unwanted: gettext("not wanted"),
  limit: gettext("enough others"),
};

/** @param {string} reason */
export function droppedWords(reason) {
  return DROPPED[reason] ?? reason;
}

/**
 * Those that were shown, by their numbers, then the others, the best first.
 * @param {Retrieval} retrieval
 * @returns {Row[]}
 */
export function rowsOf({ excerpts, candidates }) {
  const numbers = new Map(excerpts.flatMap(({ number, chunks }) => chunks.map((chunk) => [chunk, number])));
  const rows = candidates.map((candidate) => ({ number: candidate.dropped ? null : numbers.get(candidate.chunk) ?? null, candidate }));
  return rows.sort((a, b) => (a.number ?? Infinity) - (b.number ?? Infinity) || 0);
}

/**
 * What was shown without being found: documents that were shown whole, or parts of them.
 * @param {Retrieval} retrieval
 * @returns {Told[]}
 */
export function unsearchedOf({ excerpts, candidates }) {
  const known = new Set(candidates.map(({ chunk }) => chunk));
  return excerpts.filter(({ chunks }) => !chunks.some((chunk) => known.has(chunk)));
}

/**
 * How well a passage fits, figure by figure.
 * @param {Candidate} candidate
 * @returns {{words: string, figure: string}[]}
 */
export function figuresOf({ lexical_rank, vector_rank, cosine, coverage, relevance }) {
  const figures = [
    { words: gettext("by words"), figure: rank(lexical_rank) },
    { words: gettext("by meaning"), figure: rank(vector_rank) },
  ];
  if (cosine !== null) figures.push({ words: gettext("cosine"), figure: hundredths.format(cosine) });
  figures.push({ words: gettext("words covered"), figure: percent(coverage) });
  if (relevance !== null) figures.push({ words: gettext("by the reranker"), figure: hundredths.format(relevance) });
  return figures;
}

/** @param {number | null} place */
function rank(place) {
  return place === null ? "–" : `#${place}`;
}
