// @ts-check
/** From what was written to the session: at once, after the answer before, or again after a reload. */

import { loadProse } from "./answer-text.js";
import { answering } from "./chat-models.js";
import { composer, drafts, foot, list, queue, scroll, session } from "./chat-parts.js";

const MOVE_MS = 180;
const PATIENCE_MS = 5_000; // until what another tab has sent is sent from here

/** @param {import("./drafts.js").Sent} sent */
export function send(sent) {
  loadProse();
  withNewTurn(() => session.send({ ...sent, ...answering() }));
}

/** @param {() => void} send */
export function withNewTurn(send) {
  const wasAt = foot.getBoundingClientRect().top;
  send();
  list.markFresh();
  scroll.toEnd();
  const moved = wasAt - foot.getBoundingClientRect().top;
  if (Math.abs(moved) > 40) glide(foot, moved);
}

/**
 * Show where something went.
 * @param {HTMLElement} moved
 * @param {number} fromPx
 */
function glide(moved, fromPx) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const keyframes = { transform: [`translateY(${fromPx}px)`, "none"] };
  moved.animate(keyframes, { duration: MOVE_MS, easing: "ease-out" });
}

export function stop() {
  session.stop((message) => list.numShown(message));
  composer.offerInput();
}

/** What waits for the end of an answer. */
export function sendNext() {
  if (list.ariaBusy) return;
  const next = queue.take();
  if (next) send(next);
  else sendForOther(); // what waits stands behind it
}

/** What another tab has sent is its own to follow; but where it was closed meanwhile, nobody else does. */
function sendForOther() {
  const { draftName } = session.store;
  const other = unfollowed(draftName);
  if (!other) return;
  setTimeout(() => {
    const isSame = unfollowed(draftName)?.clientId === other.clientId && session.store.draftName === draftName;
    if (isSame && !session.store.isBusy) sendAgain(draftName);
  }, PATIENCE_MS);
}

/**
 * What was sent before a reload, and perhaps never arrived: its client id makes it one message.
 * @param {string | null} conversation
 */
export function sendAgain(conversation) {
  const sent = unfollowed(conversation);
  if (sent) session.send({ ...sent, ...answering() });
}

/** What was sent, and not from here since this page was loaded. @param {string | null} conversation */
function unfollowed(conversation) {
  return drafts.of(conversation).sent.find(({ clientId }) => !session.isSending(clientId));
}
