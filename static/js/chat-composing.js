// @ts-check
/** What the message box and the messages that wait above it ask for; `/` and `@` in it; things to try. */

import { loadProse } from "./answer-text.js";
import { actions } from "./chat-acting.js";
import { chooseModel, showModels } from "./chat-models.js";
import { startNew } from "./chat-moving.js";
import { announcer, api, choice, composer, list, page, picker, queue, session, setup } from "./chat-parts.js";
import { send, sendNext, stop } from "./chat-sending.js";
import { find } from "./dom.js";
import { gettext } from "./i18n.js";
import { whenTyped } from "./typed-sign.js";

composer.addEventListener("send", (event) => send(/** @type {CustomEvent} */ (event).detail));
composer.addEventListener("queue", (event) => {
  queue.add(/** @type {CustomEvent} */ (event).detail);
  announcer.say(gettext("The message is sent after this answer."));
});
composer.addEventListener("held", (event) => announcer.say(/** @type {CustomEvent} */ (event).detail));
composer.addEventListener("stop", stop);
composer.addEventListener("edit-last", () => queue.focusLast() || list.ariaBusy || actions.editLast());
composer.input.addEventListener("input", loadProse, { once: true }); // for the answer that will come
queue.addEventListener("take-back", (event) => composer.takeBack(/** @type {CustomEvent} */ (event).detail));
queue.addEventListener("leave", () => composer.focusInput());
queue.addEventListener("send-now", sendNext);

whenTyped(composer.input, "/", async () => (await import("./prompt-menu.js")).promptMenu(composer.input, () => api.prompts()));
whenTyped(composer.input, "@", async () => (await import("./model-menu.js")).modelMenu(composer.input, whoCanAnswer, chooseAnswerer));
picker.addEventListener("assistant", (event) => chooseAssistant(/** @type {CustomEvent} */ (event).detail));

find(page, ".starters").addEventListener("click", (/** @type {Event} */ { target }) => {
  const starter = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-starter]"));
  if (starter) composer.fill(starter.dataset.starter ?? "");
});

function whoCanAnswer() {
  return { models: choice.models, assistants: picker.assistants };
}

/** @param {import("./answerers.js").Answerer} answerer */
function chooseAnswerer({ kind, id, title }) {
  announcer.say(gettext("%(name)s answers next.", { name: title }));
  if (kind === "model") chooseModel(id);
  else chooseAssistant(id);
}

/**
 * Begin a chat with an assistant: this one, if it has not begun yet.
 * @param {string} id
 */
export async function chooseAssistant(id) {
  if (session.store.path().length && !(await startNew())) return;
  const before = setup.assistant?.collections ?? [];
  setup.assistant = picker.assistants.find((assistant) => assistant.id === id) ?? null;
  composer.picked.swap(before, setup.assistant?.collections ?? []);
  const model = setup.assistant?.model;
  if (model && choice.models.some(({ name }) => name === model)) choice.chooseHere(model);
  showModels();
  composer.offerInput();
}
