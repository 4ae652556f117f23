// @ts-check
/**
 * The dialog for how a chat is set up: who the model is in it, what it is shown of a long one, and how its
 * answers are drawn. Loaded when it is first opened.
 */

import { find, setText } from "./dom.js";

/**
 * @typedef {import("./chat-setup.js").NewChat} NewChat
 * @typedef {import("./chat-setup.js").Parameters} Parameters
 * @typedef {NewChat & {instructions?: string, version?: number}} Setup of GET …/setup
 */

let listening = new AbortController();

/**
 * @param {HTMLDialogElement} dialog
 * @param {Setup} setup
 * @param {boolean} isNew the chat has not begun
 * @param {(changes: NewChat & {version?: number}) => Promise<void>} save throws where it is not saved
 */
export function askForSetup(dialog, setup, isNew, save) {
  const form = find(dialog, "form");
  fill(form, setup, isNew);
  showProblem(form, "");
  listening.abort();
  listening = new AbortController();
  form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
    if (/** @type {HTMLButtonElement | null} */ (event.submitter)?.value !== "yes") return;
    event.preventDefault();
    const wanted = read(form, setup);
    try {
      await save(isNew ? whatWasSet(wanted, setup) : { ...wanted, version: setup.version });
      dialog.close();
    } catch (error) {
      showProblem(form, /** @type {Error} */ (error).message); // what was typed stays
    }
  }, { signal: listening.signal });
  dialog.showModal();
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
  const instructions = find(form, "[data-instructions]");
  instructions.hidden = !setup.instructions;
  setText(find(instructions, "blockquote"), setup.instructions ?? "");
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
 * Of a new chat: what is left out is the assistant's, or the user's own.
 * @param {Required<Pick<NewChat, "system_prompt" | "history_strategy" | "parameters">>} wanted
 * @param {Setup} setup
 * @returns {NewChat}
 */
function whatWasSet({ system_prompt, history_strategy, parameters }, setup) {
  return {
    ...(system_prompt && { system_prompt }),
    ...(history_strategy && { history_strategy }),
    ...((setup.parameters || Object.keys(parameters).length > 0) && { parameters }),
  };
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
