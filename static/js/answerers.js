// @ts-check
/**
 * Who can answer: models and assistants, as the composer's @ finds them. Pure functions.
 *
 * @typedef {{kind: "model" | "assistant", id: string, title: string, about: string}} Answerer
 */

const AT = /(?:^|\s)@([^\s@]*)$/;
const MAX_SHOWN = 8;

/**
 * What is typed behind an @ in front of the caret.
 * @param {string} text
 * @param {number} caret
 * @returns {{from: number, query: string} | null} null: nobody is being called, as in an e-mail address
 */
export function answererAt(text, caret) {
  const found = text.slice(0, caret).match(AT);
  return found ? { from: caret - found[1].length - 1, query: found[1].toLowerCase() } : null;
}

/**
 * Those whose title begins with the query, then those in which it stands anywhere.
 * @param {Answerer[]} answerers
 * @param {string} query in lower case
 */
export function answerersFor(answerers, query) {
  const words = (/** @type {Answerer} */ { title, id, about }) => `${title} ${id} ${about}`.toLowerCase();
  const begins = answerers.filter(({ title }) => title.toLowerCase().startsWith(query));
  const has = answerers.filter((one) => !begins.includes(one) && words(one).includes(query));
  return [...begins, ...has].slice(0, MAX_SHOWN);
}

/**
 * Everybody who can be asked now; assistants come first, as in the list at the top.
 * @param {{models: {name: string, title: string, description: string, state: string}[],
 *   assistants: {id: string, name: string, description: string}[]}} known
 * @returns {Answerer[]}
 */
export function answerersOf({ models, assistants }) {
  const people = assistants.map(({ id, name, description }) => ({ kind: /** @type {const} */ ("assistant"), id, title: name, about: description }));
  const able = models.filter(({ state }) => state !== "failed");
  return [...people, ...able.map(({ name, title, description }) => ({ kind: /** @type {const} */ ("model"), id: name, title, about: description }))];
}
