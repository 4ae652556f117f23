// @ts-check
/** From chat to chat: by the list, an address, a find or a deletion; also where one does not come. */

import { loadProse } from "./answer-text.js";
import { showModels } from "./chat-models.js";
import {
  announcer, api, choice, composer, drafts, list, page, queue, scroll, session, setup, setupButton, sidebar, tell, tools,
} from "./chat-parts.js";
import { showPath, showRunning } from "./chat-path.js";
import { sendAgain } from "./chat-sending.js";
import { temporary } from "./chat-temporary.js";
import { find, setText } from "./dom.js";
import { TEMPORARY } from "./drafts.js";
import { Emitter } from "./emitter.js";
import { goTo, setTitle } from "./navigation.js";
import { textOf } from "./parts.js";

/** Emits "opening" before another chat is shown, and "opened" with the message that was looked for, or null. */
export const moves = new Emitter();

const unopened = find(page, ".unopened");
let lastAsked = 0;
/** Open the chat that could not be opened. */
let tryAgain = () => {};
/** The chat that was shown when it was deleted. @type {string | null} */
let lastLost = null;

session.on("opened", opened);
find(unopened, "button").addEventListener("click", () => tryAgain());
sidebar.addEventListener("open", (event) => openChat(/** @type {CustomEvent} */ (event).detail));
sidebar.addEventListener("new", startNew);
sidebar.addEventListener("deleted", (event) => deleted(/** @type {CustomEvent} */ (event).detail));

/**
 * Returns false where the reader stays in a temporary chat.
 * @param {string | null} id
 * @param {string | null} [wanted] a message of it
 */
export async function show(id, wanted = null) {
  const asked = ++lastAsked;
  if (!(await temporary.mayLeave())) {
    goTo(null);
    return false;
  }
  sidebar.setCurrent(id);
  if (id === null) {
    session.open(null);
    return true;
  }
  if (list.ariaBusy && id === session.store.conversation?.id && !wanted) {
    opened(null); // the other one has not come
    session.refresh();
  } else await load(id, wanted, asked);
  return true;
}

/**
 * What is written meanwhile is written to the chat that comes.
 * @param {string} id
 * @param {string | null} wanted
 * @param {number} [asked]
 */
async function load(id, wanted, asked = ++lastAsked) {
  setAway("loading");
  setTitle(sidebar.library.conversations.get(id) ?? null);
  writeTo(id, null);
  try {
    const [{ conversation, messages }] = await Promise.all([api.conversation(id), loadProse()]);
    if (asked === lastAsked) session.open(conversation, messages, wanted);
  } catch (error) {
    if (asked === lastAsked) notOpened(/** @type {any} */ (error), () => load(id, wanted));
  }
}

/**
 * @param {{status: number, message: string}} error
 * @param {() => void} again
 */
function notOpened({ status, message }, again) {
  if (status !== 404) {
    setText(find(unopened, "p"), message);
    tryAgain = again;
    setAway("unopened");
    return;
  }
  const { draftName, isTemporary } = session.store;
  tell(message);
  setAway(null);
  writeTo(draftName, null, isTemporary);
  showRunning();
  nameShown("replaceState");
}

/** There is a line again. */
export function openAgain() {
  if (!unopened.hidden) tryAgain();
}

/** What the list shows is not, or not yet, the chat of the address. @param {"loading" | "unopened" | null} why */
function setAway(why) {
  list.ariaBusy = why && "true";
  for (const about of [list, setupButton, tools]) about.inert = why !== null;
  unopened.hidden = why !== "unopened";
  page.toggleAttribute("data-unopened", why === "unopened");
  if (!why) return;
  composer.setRunning(false);
  composer.hold(why);
}

/**
 * @param {string | null} draftName
 * @param {import("./sources.js").Sources | null} usual what is picked if nothing was picked anew
 */
function writeTo(draftName, usual, isTemporary = false) {
  composer.open(draftName);
  composer.picked.open(draftName, drafts.of(draftName).sources ?? usual, isTemporary);
  queue.open(draftName);
}

/** Address, title and list say which chat is shown. @param {"pushState" | "replaceState"} [how] */
export function nameShown(how) {
  const { conversation } = session.store;
  goTo(conversation, how);
  setTitle(conversation);
  sidebar.setCurrent(conversation?.id ?? null);
}

export function startNew() {
  goTo(null);
  return show(null);
}

/**
 * @param {{id: string, url: string}} conversation
 * @param {string | null} [message]
 */
export function openChat(conversation, message = null) {
  goTo(conversation);
  return show(conversation.id, message);
}

/** @param {string} id */
export function deleted(id) {
  composer.forget(id);
  if (id !== session.store.conversation?.id || list.ariaBusy) return;
  lastLost = id;
  startNew();
}

/** Its reader is where the deletion has led, and goes back. @param {Iterable<string>} ids of chats that are there again */
export function restored(ids) {
  for (const id of ids) {
    drafts.restore(id);
    const chat = sidebar.library.conversations.get(id);
    const { draftName, leaf } = session.store;
    if (chat && id === lastLost && draftName === null && leaf === null && !list.ariaBusy) openChat(chat);
  }
}

/** @param {string | null} wanted */
function opened(wanted) {
  moves.emit("opening");
  setAway(null);
  const { conversation, liveRun, draftName, isTemporary } = session.store;
  choice.open(draftName);
  setup.forget();
  writeTo(draftName, { collections: lastPicked(), documents: [] }, isTemporary);
  if (!isTemporary) composer.forget(TEMPORARY);
  sendAgain(draftName); // before what waits for its answer
  showPath();
  showModels();
  setTitle(conversation);
  const found = wanted && list.reveal(wanted);
  if (found) scroll.toTarget(found);
  else scroll.toEnd();
  if (liveRun) {
    const shown = session.store.shown(liveRun.message);
    announcer.skip(liveRun.message, textOf(shown?.parts ?? []));
  }
  if (found) focusOn(found);
  else composer.offerInput();
  moves.emit("opened", found || null);
}

/** Collections that the last question was answered from. */
function lastPicked() {
  return session.store.path().findLast(({ role }) => role === "user")?.sources?.collections ?? [];
}

/** @param {HTMLElement} message that was looked for: it is also what a screen reader reads next */
function focusOn(message) {
  message.tabIndex = -1;
  message.focus({ preventScroll: true });
}
