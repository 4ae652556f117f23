// @ts-check
/**
 * What a typed `#name` means: which collections and documents have it in their names. Pure functions.
 *
 * @typedef {{kind: "collections" | "documents", id: string, name: string, about: string}} Source
 */

/** Names may have spaces; a heading in Markdown has one right behind its sign. */
const SIGN = /(?:^|\s)#((?:[^\s#][^\n#]{0,60})?)$/;
const MAX_SHOWN = 10;

/**
 * What is typed behind a sign in front of the caret.
 * @param {string} text
 * @param {number} caret
 * @returns {{from: number, query: string} | null} null: nothing is being picked
 */
export function hashAt(text, caret) {
  const found = text.slice(0, caret).match(SIGN);
  return found ? { from: caret - found[1].length - 1, query: found[1].toLocaleLowerCase() } : null;
}

/**
 * Those whose name begins with the query, then those that have it anywhere. Collections come first.
 * @param {Source[]} sources
 * @param {string} query
 * @param {Set<string>} [picked] ids of those that are picked already
 */
export function sourcesFor(sources, query, picked = new Set()) {
  const name = (/** @type {Source} */ one) => one.name.toLocaleLowerCase();
  const open = sources.filter((one) => !picked.has(one.id) && name(one).includes(query));
  const rank = (/** @type {Source} */ one) => (name(one).startsWith(query) ? 0 : 2) + (one.kind === "collections" ? 0 : 1);
  return open.sort((a, b) => rank(a) - rank(b)).slice(0, MAX_SHOWN);
}
