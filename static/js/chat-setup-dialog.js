// @ts-check
/**
 * The dialog for how a chat is set up: who the model is in it, what it is shown of a long one, and how its
 * answers are drawn. Loaded when it is first opened.
 */

import { confirmed } from "./dialog.js";
import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";

/**
 * @typedef {import("./chat-setup.js").NewChat} NewChat
 * @typedef {import("./chat-setup.js").Parameters} Parameters
 * @typedef {{system_prompt?: string, parameters?: Parameters, history_strategy?: string | null}} NewSetup
 * @typedef {NewChat & {instructions?: string, memory?: string, version?: number}} Setup of GET …/setup
 */

let listening = new AbortController();

/**
 * @param {HTMLDialogElement} dialog
 * @param {Setup} setup
 * @param {NewSetup | null} usual what a chat that has not begun gets by itself, by its assistant; null: it has begun
 * @param {(changes: NewChat & {version?: number}) => Promise<void>} save throws where it is not saved
 */
export function askForSetup(dialog, setup, usual, save) {
  const isNew = usual !== null;
  const form = find(dialog, "form");
  fill(form, setup, isNew);
  showProblem(form, "");
  listening.abort();
  listening = new AbortController();
  const before = JSON.stringify(read(form, setup));
  dialog.addEventListener("cancel", async (event) => {
    if (JSON.stringify(read(form, setup)) === before) return;
    event.preventDefault();
    if (await mayLeave()) dialog.close();
  }, { signal: listening.signal });
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    if (/** @type {HTMLButtonElement | null} */ (event.submitter)?.value !== "yes") return;
    event.preventDefault();
    const wanted = read(form, setup);
    try {
      await save(usual ? whatWasSet(wanted, usual) : { ...wanted, version: setup.version });
      dialog.close();
    } catch (error) {
      showProblem(form, /** @type {Error} */ (error).message); // what was typed stays
    }
  }, { signal: listening.signal });
  dialog.showModal();
}

function mayLeave() {
  return confirmed({
    title: gettext("Leave without saving?"),
    text: gettext("What you have changed about this chat is not saved yet."),
    action: gettext("Leave"),
  });
}

/**
 * @param {any} form
 * @param {Setup} setup
 * @param {boolean} isNew
 */
function fill(form, setup, isNew) {
  const { system_prompt: prompt, history_strategy: strategy } = form.elements;
  prompt.value = setup.system_prompt ?? "";
  Object.assign(find(strategy, "[value='']"), { hidden: !isNew, disabled: !isNew });
  strategy.value = setup.history_strategy || (isNew ? "" : "window");
  for (const field of numbersOf(form)) field.value = String(setup.parameters?.[field.name] ?? "");
  showKept(find(form, "[data-instructions]"), setup.instructions);
  showKept(find(form, "[data-memory]"), setup.memory?.replace(/^.*\n/, "")); // without its head
}

/** @param {HTMLElement} root @param {string} [words] that the chat was begun with */
function showKept(root, words) {
  root.hidden = !words;
  setText(find(root, "blockquote"), words ?? "");
}

/**
 * @param {any} form
 * @param {Setup} setup parameters that the dialog does not show stay as they are
 */
function read(form, setup) {
  const parameters = { ...setup.parameters };
  for (const { name, value, valueAsNumber } of numbersOf(form)) {
    if (!value) delete parameters[name];
    else if (value !== String(parameters[name])) parameters[name] = valueAsNumber;
  }
  const { system_prompt: prompt, history_strategy: strategy } = form.elements;
  return { system_prompt: prompt.value.trim(), history_strategy: strategy.value, parameters };
}

/**
 * Of a new chat: what is left out is the assistant's, also that of another one, or the user's own. Pure.
 * @param {Required<Pick<NewChat, "system_prompt" | "history_strategy" | "parameters">>} wanted
 * @param {NewSetup} usual
 * @returns {NewChat}
 */
export function whatWasSet({ system_prompt, history_strategy, parameters }, usual) {
  return {
    ...(system_prompt && system_prompt !== usual.system_prompt && { system_prompt }),
    ...(history_strategy && history_strategy !== usual.history_strategy && { history_strategy }),
    ...(written(parameters) !== written(usual.parameters) && { parameters }),
  };
}

/** In whichever order they were set. */
function written(/** @type {Parameters} */ parameters = {}) {
  return JSON.stringify(Object.entries(parameters).sort());
}

/** @param {HTMLFormElement} form @returns {NodeListOf<HTMLInputElement>} */
function numbersOf(form) {
  return form.querySelectorAll("input[type=number]");
}

/** @param {HTMLElement} form @param {string} words */
function showProblem(form, words) {
  const root = find(form, "[data-problem]");
  root.hidden = !words;
  setText(root, words);
}
