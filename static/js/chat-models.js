// @ts-check
/** Who answers next: the model of the chat and those beside it, and what is shown of them. */

import { welcomeOf } from "./chat-setup.js";
import { api, choice, composer, list, page, picker, session, setup, sidebar, statusBar, tell, tellOf } from "./chat-parts.js";
import { find } from "./dom.js";
import { gettext } from "./i18n.js";
import { GlassMarks } from "./glass-marks.js";

const showWelcome = welcomeOf(page);
/** @type {Promise<import("./tool-picker.js").ToolPicker> | null} once its card is opened, or a chat has tools */
let toolPicker = null;

new GlassMarks({ session, api, composer, list, sidebar, setup, model: nextModel });
session.on("models", showModels);
composer.picked.sees = () => [currentModel()?.name, ...answering().beside].every((name) => choice.models.find((one) => one.name === name)?.images);
page.querySelector("#tool-card")?.addEventListener("beforetoggle", (/** @type {ToggleEvent} */ { newState }) => {
  if (newState === "open") showTools();
});
picker.addEventListener("choose", (event) => chooseModel(/** @type {CustomEvent} */ (event).detail));
picker.addEventListener("beside", (event) => toggleBeside(/** @type {CustomEvent} */ (event).detail));
picker.addEventListener("load", (event) => loadModel(/** @type {CustomEvent} */ (event).detail));
picker.addEventListener("pin", (event) => {
  choice.togglePin(/** @type {CustomEvent} */ (event).detail);
  showModels();
});
statusBar.addEventListener("load", () => loadModel(currentModel().name));

export function currentModel() {
  return choice.current(session.store.conversation?.model);
}

/** Its name. @returns {string | null} */
export function nextModel() {
  return currentModel()?.name ?? null;
}

/** Who answers next, and beside it; a temporary chat has one answer at a time. */
export function answering() {
  const model = currentModel()?.name;
  const beside = session.store.isTemporary ? [] : choice.beside(model);
  return { model: model ?? null, beside };
}

export function showModels() {
  choice.models = session.models;
  const model = currentModel();
  const { conversation } = session.store;
  const assistant = conversation ? conversation.assistant : setup.assistant;
  picker.show({ models: session.models, chosen: model?.name ?? "", assistant, beside: answering().beside, pinned: choice.pinned });
  statusBar.setModel(model);
  if (toolPicker || setup.toolServers(conversation).length) showTools();
  if (composer.picked.attachments.length) composer.picked.emit("changed"); // a model that sees takes pictures unread
  showWelcome(setup.assistant, model ?? null);
}

/** Once there is something to tell of budgets, or may be. */
export async function budgetLine() {
  await import("./budget-line.js");
  const line = /** @type {import("./budget-line.js").BudgetLine} */ (find(document, "budget-line"));
  line.read = () => api.budgets();
  return line;
}

async function showTools() {
  if (!page.querySelector("#tool-card")) return;
  const conversation = () => session.store.conversation;
  const isTemporary = () => session.store.isTemporary;
  toolPicker ??= import("./tool-picker.js").then(({ ToolPicker }) => new ToolPicker(page, { setup, conversation, isTemporary, say: tell }));
  (await toolPicker).show(currentModel()?.tools ?? true);
}

/** @param {string} name */
export function chooseModel(name) {
  const { state } = choice.choose(name);
  showModels();
  if (state === "cold" || state === "failed") loadModel(name);
  composer.offerInput();
}

/** @param {string} name of one that answers too from now on, or no more */
function toggleBeside(name) {
  if (session.store.isTemporary) tell(gettext("In a temporary chat one model answers."));
  else if (!choice.toggleBeside(name)) tell(gettext("At most four models answer side by side."));
  showModels();
}

/** @param {string} name */
function loadModel(name) {
  return api.loadModel(name).catch(tellOf);
}
