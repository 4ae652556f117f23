// @ts-check
/**
 * Saved prompts as texts: which of them a typed `/name` means, and the variables that they ask for:
 * `{{name}}` a text, `{{tone:formal|casual}}` a choice, `{{day:date}}` a date. Pure functions.
 *
 * @typedef {{id: string, name: string, text: string}} SavedPrompt
 * @typedef {{name: string, kind: "text" | "choice" | "date", choices: string[]}} Variable
 */

const SLASH = /(?:^|\s)\/([a-z0-9_-]*)$/i;
const VARIABLE = /\{\{\s*([^{}:|]+?)\s*(?::\s*([^{}]*?)\s*)?\}\}/g;
const MAX_SHOWN = 8;

/**
 * What is typed behind a slash in front of the caret.
 * @param {string} text
 * @param {number} caret
 * @returns {{from: number, query: string} | null} null: no prompt is being called
 */
export function slashAt(text, caret) {
  const found = text.slice(0, caret).match(SLASH);
  return found ? { from: caret - found[1].length - 1, query: found[1].toLowerCase() } : null;
}

/**
 * Those whose name begins with the query, then those that have it anywhere in name or text.
 * @param {SavedPrompt[]} prompts
 * @param {string} query
 */
export function promptsFor(prompts, query) {
  const begins = prompts.filter(({ name }) => name.startsWith(query));
  const has = prompts.filter(
    (prompt) =>
      !begins.includes(prompt) && `${prompt.name} ${prompt.text}`.toLowerCase().includes(query),
  );
  return [...begins, ...has].slice(0, MAX_SHOWN);
}

/**
 * The variables of a text, each once, in order.
 * @param {string} text
 * @returns {Variable[]}
 */
export function variablesOf(text) {
  /** @type {Map<string, Variable>} */
  const found = new Map();
  for (const [, name, kind = ""] of text.matchAll(VARIABLE)) {
    if (!found.has(name)) found.set(name, variable(name, kind));
  }
  return [...found.values()];
}

/**
 * @param {string} name
 * @param {string} kind
 * @returns {Variable}
 */
function variable(name, kind) {
  if (kind === "date") return { name, kind: "date", choices: [] };
  const choices = kind.split("|").map((choice) => choice.trim()).filter(Boolean);
  return { name, kind: choices.length ? "choice" : "text", choices };
}

/**
 * The text with each variable's value in its place.
 * @param {string} text
 * @param {Record<string, string>} values
 */
export function filled(text, values) {
  return text.replace(VARIABLE, (whole, name) => (Object.hasOwn(values, name) ? values[name] : whole));
}
