// @ts-check
/** What is shown of the chat: its messages, what the model does not see of it, and whether something is written. */

import { budgetLine } from "./chat-models.js";
import { api, choice, composer, list, page, queue, session, socket, tools } from "./chat-parts.js";
import { sendNext } from "./chat-sending.js";
import { temporary } from "./chat-temporary.js";
import { gettext } from "./i18n.js";
import { leftOutOf, showLeftOut } from "./left-out.js";
import { tellAway } from "./tell-away.js";
import { newsLine } from "./words.js";

let wasBusy = false;

list.source = (id) => {
  const message = session.store.shown(id);
  if (!message) return null;
  const run = message.run ?? "";
  const isStopping = session.store.stopping.has(run);
  const modelTitle = choice.titleOf(message.model);
  return { message, phase: phaseOf(message, run), isStopping, modelTitle, place: placeOf(id), citing: session.store.citing(id) };
};
list.besideOf = (id) => session.store.beside(id);

session.on("path", showPath);
session.on("message", (id) => {
  list.touch(id);
  if (session.store.phases.get(session.store.shown(id)?.run ?? "")?.phase === "approval") tellAway(gettext("A tool waits for your word."), () => {});
  showWhatIsLeftOut();
  showRunning();
});

/** @param {string} id */
function placeOf(id) {
  const siblings = session.store.siblings(id);
  const index = siblings.findIndex((sibling) => sibling.id === id);
  return { index, count: siblings.length, isBeside: session.store.beside(id).length > 0, isTemporary: session.store.isTemporary };
}

/**
 * @param {import("./conversation-store.js").Message} message
 * @param {string} run
 */
function phaseOf(message, run) {
  if (socket.state !== "open" && socket.retryAt) return { phase: "offline" };
  if (message.status === "sending") return { phase: "sending" };
  return session.store.phases.get(run) ?? { phase: "starting" };
}

export function showPath() {
  const path = session.store.path();
  page.toggleAttribute("data-empty", path.length === 0);
  tools.hidden = !session.store.conversation;
  list.show(path);
  showWhatIsLeftOut();
  temporary.show();
  showRunning();
}

function showWhatIsLeftOut() {
  showLeftOut(list, leftOutOf(session.store.path()), (summary) => api.summary(summary));
}

/** Whether something is being written, and if not, what is sent next. */
export function showRunning() {
  if (list.ariaBusy) return; // it is about another chat than the one that is written to
  const { store } = session;
  const last = store.leaf === null ? null : store.shown(store.leaf);
  if (wasBusy && !store.isBusy) {
    budgetLine().then((line) => line.refresh());
    tellAway(newsLine({ title: store.conversation?.title ?? "", last_answer: last?.status }), () => {});
  }
  wasBusy = store.isBusy;
  composer.setRunning(store.isBusy);
  const hasFailed = last?.status === "failed" || last?.status === "refused";
  const isUndecided = !store.isBusy && last !== null && store.beside(last.id).length > 0;
  if (store.isBusy || !last) queue.hold(null);
  else queue.hold(isUndecided ? "beside" : hasFailed ? "failed" : null);
  if (last && !store.isBusy && !queue.isHeld) sendNext(); // what waits never begins a chat
  composer.hold(isUndecided ? "beside" : null);
}
