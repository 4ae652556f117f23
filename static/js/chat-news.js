// @ts-check
/** News of the session, the line and the list of chats, and who is told. */

import { actions } from "./chat-acting.js";
import { keysOf } from "./chat-keys.js";
import { budgetLine } from "./chat-models.js";
import { deleted, moves, nameShown, openAgain, openChat, restored } from "./chat-moving.js";
import { announcer, api, choice, composer, drafts, list, queue, session, sidebar, socket, statusBar, tell, tellOf } from "./chat-parts.js";
import { TEMPORARY } from "./drafts.js";
import { gettext } from "./i18n.js";
import { setTitle } from "./navigation.js";
import { textOf } from "./parts.js";
import { tellAway } from "./tell-away.js";
import { endLine, newsLine, phaseLine } from "./words.js";

const UNDO_MS = 10_000;

session.on("accepted", ({ clientId, conversation, isNew, isShown }) => {
  const isHere = isNew && isShown && !list.ariaBusy; // unless its reader is about to see another one
  composer.accepted({ clientId, conversation: conversation?.id ?? TEMPORARY, isHere });
  if (!isNew) return;
  drafts.moveQueued(null, conversation.id);
  if (isShown) choice.moveTo(conversation.id);
  if (!list.ariaBusy) queue.open(session.store.draftName);
  if (isHere) nameShown();
});
session.on("rejected", ({ error, ...rejected }) => {
  if (error.code === "insufficient_quota") budgetLine().then((line) => line.insist());
  tellOf(error);
  composer.rejected(rejected);
  if (rejected.conversation === session.store.draftName) actions.reopen(composer.input.value !== "");
});
session.on("conversations", (conversation) => {
  sidebar.update(conversation);
  drafts.restore(conversation.id); // another page may have taken its deletion back
  if (conversation.id !== session.store.conversation?.id || list.ariaBusy) return;
  setTitle(conversation);
  read();
});
session.on("deleted", (id) => {
  sidebar.forget(id);
  deleted(id);
});
session.on("subscribed", async () => {
  openAgain();
  session.compare(await sidebar.refresh());
});
session.on("library", () => sidebar.refresh());
session.on("stranger", () => location.assign("/"));
session.on("error", tellOf);

socket.on("state", (state) => {
  statusBar.setConnection(state, socket.retryAt);
  announcer.sayConnection(state);
  if (state === "signed-out") import("./sign-in-again.js").then(({ goOn }) => goOn(statusBar, session, drafts));
  const last = session.store.path().at(-1);
  if (last) list.touch(last.id);
});
statusBar.addEventListener("retry", () => socket.connect());

sidebar.addEventListener("done", (event) => {
  const { text, undo } = /** @type {CustomEvent} */ (event).detail;
  const run = async () => restored(await undo());
  tell(text, { action: gettext("Undo"), run, shownMs: UNDO_MS });
});
sidebar.addEventListener("answered", (event) => {
  const conversation = /** @type {CustomEvent} */ (event).detail;
  const text = newsLine(conversation);
  if (!text) return;
  const run = () => openChat(conversation);
  tellAway(text, run);
  tell(text, { action: gettext("Open"), run });
});
for (const region of [sidebar, list]) region.addEventListener("problem", (event) => tell(/** @type {CustomEvent} */ (event).detail));
list.addEventListener("undrawn", (event) => tell(/** @type {CustomEvent} */ (event).detail));
list.addEventListener("copied", () => announcer.say(gettext("Copied.")));
list.addEventListener("said", (event) => announcer.say(/** @type {CustomEvent} */ (event).detail));

list.addEventListener("drawn", (event) => {
  for (const id of /** @type {CustomEvent} */ (event).detail) {
    const message = session.store.shown(id);
    if (message?.role !== "assistant" || message.status === "sending") continue;
    const hasEnded = message.status !== "running";
    announcer.follow(id, textOf(message.parts), hasEnded, message.key !== undefined, hasEnded ? endLine(message) : null);
    const phase = hasEnded ? null : session.store.phases.get(message.run ?? "");
    if (phase?.phase === "approval") announcer.ask(`${message.run} ${phase.detail}`, `${phaseLine(phase).text} ${approvalKeys()}`);
  }
});

function approvalKeys() {
  return gettext("%(allow)s allows it, %(deny)s does not.", { allow: keysOf("allow"), deny: keysOf("deny") });
}

moves.on("opened", read);

/** What is shown has been read: nobody's tab marks it any more. */
function read() {
  const { conversation } = session.store;
  if (!conversation?.unread) return;
  conversation.unread = false; // told once
  api.arrange([{ id: conversation.id, unread: false }]).catch(() => {});
}
