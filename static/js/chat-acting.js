// @ts-check
/** What is done with answers: their buttons and menus, how they came about, and what they were written from. */

import { api, bootstrap, choice, composer, drafts, list, panel, scroll, session, sidebar, tell, tellOf, toasts } from "./chat-parts.js";
import { nextModel } from "./chat-models.js";
import { moves, openChat } from "./chat-moving.js";
import { withNewTurn } from "./chat-sending.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";
import { MessageActions } from "./message-actions.js";
import { listenForSources } from "./source-door.js";

export const actions = new MessageActions({
  session,
  api,
  list,
  scroll,
  toasts,
  drafts,
  withNewTurn,
  speech: bootstrap.speaks ? (text, signal) => api.speech(text, signal) : null,
  models: () => session.models,
  model: nextModel,
  focusComposer: () => composer.focusInput(),
  goTo: (conversation) => {
    sidebar.update(conversation);
    openChat(conversation);
  },
});
/** @type {import("./glass.js").Glass | null} once an answer is looked into */
let glass = null;
/** @type {import("./artifact-panel.js").ArtifactPanel | null} once a block of code is opened beside the chat */
let artifacts = null;

moves.on("opening", () => (glass ? glass.reset() : panel.close()));
moves.on("opened", (found) => actions.reopen(found !== null));
list.addEventListener("trace", (event) => lookInto(/** @type {CustomEvent} */ (event).detail));
list.addEventListener("artifact", (event) => openBeside(/** @type {HTMLElement} */ (event.target)));
for (const region of [list, panel]) region.addEventListener("mend", (event) => askToMend(/** @type {CustomEvent} */ (event).detail));
listenForSources({ list, panel, composer, api, excerptsOf, tell, maxFileBytes: bootstrap.max_file_bytes });

/** @param {{id: string, opener: HTMLElement}} answer */
async function lookInto({ id, opener }) {
  const module = await import("./glass.js").catch(() => null);
  if (!module) return tell(gettext("The server cannot be reached."));
  if (!session.store.shown(id)) return; // another chat has come meanwhile
  glass ??= new module.Glass({
    api,
    panel,
    titleOf: (model) => choice.titleOf(model),
    rootOf: (message) => list.querySelector(`[data-message="${CSS.escape(message)}"]`),
    branch: branchAtToken,
    isFromDocuments: (message) => Boolean(session.store.shown(message)?.found),
    askWithout: (message, without) => {
      panel.close();
      actions.regenerate(message, { model: session.store.shown(message)?.model, without });
    },
    tell,
  });
  glass.toggle(id, opener);
}

/**
 * Go on from a token with another one: the news of the chat bring the new answer.
 * @param {import("./glass.js").TokenBranch} branch
 */
async function branchAtToken(branch) {
  try {
    await api.branchAtToken({ ...branch, clientId: newId() });
    glass?.reset();
  } catch (error) {
    tellOf(error);
  }
}

/** A block of code in the side panel. @param {HTMLElement} opener a button of its bar */
async function openBeside(opener) {
  const module = await import("./artifact-panel.js").catch(() => null);
  if (!module) return tell(gettext("The server cannot be reached."));
  artifacts ??= new module.ArtifactPanel(panel, session);
  artifacts.show(opener);
}

/** Ask for a fault of a page to be mended; its reader sends it, or says more before. @param {import("./preview.js").Fault} fault */
async function askToMend(fault) {
  const { faultOf } = await import("./preview.js"); // it has told of the fault
  if (panel.isSheet) panel.close();
  const before = composer.input.value.trim();
  const words = gettext("%(fault)s. Please mend it, and write the whole page again.", { fault: faultOf(fault).replace(/\.$/, "") });
  composer.fill(before ? `${before}\n\n${words}` : words);
}

/** What an answer was written from. @param {string} answer */
function excerptsOf(answer) {
  const { store } = session;
  return store.isTemporary ? api.excerptsAt(store.shown(answer)?.found?.excerpts ?? []) : api.excerpts(answer);
}
