// @ts-check
/**
 * Temporary chats: this page holds the conversation and brings all of it along with each question
 * (docs/socket.md). Pure but for ids.
 *
 * @typedef {import("./conversation-store.js").ConversationStore} ConversationStore
 * @typedef {import("./conversation-store.js").Message} Message
 */

import { pathTo } from "./branches.js";
import { newId } from "./ids.js";

/**
 * The frame that asks for an answer of which nothing is stored.
 * @param {ConversationStore} store
 * @param {import("./conversation-store.js").AskFrame} frame what would be sent in another chat
 */
export function temporaryFrame(store, frame) {
  const common = { type: "temporary.send", client_id: frame.client_id };
  if (frame.type === "message.send") {
    const messages = branch(store, `sent:${frame.client_id}`);
    return { ...common, model: frame.model, messages };
  }
  const answer = /** @type {Message} */ (store.messages.get(frame.answer));
  const goesOn = frame.type === "answer.continue";
  const wish = frame.wish ?? null;
  const messages = branch(store, goesOn || wish ? answer.id : answer.parent);
  const model = frame.model ?? answer.model;
  return { ...common, model, messages, wish, goes_on: goesOn };
}

/**
 * What the server would say of a chat that it stores.
 * @param {ConversationStore} store
 * @param {{client_id: string, run: string}} accepted
 */
export function acceptedHere(store, { client_id, run }) {
  const question = store.messages.get(`sent:${client_id}`);
  const answer = /** @type {Message} */ (store.messages.get(`answer:${client_id}`));
  const id = newId();
  /** @type {Message | undefined} */
  const message = question && { ...question, id, status: "complete" };
  /** @type {Message} */
  const begun = {
    ...answer, id: run, run, status: "running", parent: question ? id : (answer?.parent ?? null),
  };
  return { client_id, run, conversation: null, message, answer: begun };
}

/**
 * What is said up to a message, as the server reads it.
 * @param {ConversationStore} store
 * @param {string | null} id
 */
export function branch(store, id) {
  return pathTo(store.messages, id).filter(({ status }) => status !== "deleted").map(said);
}

/** @param {Message} message */
export function said({ id, parent, role, status, parts, model, finish_reason = "", edited = false, sources = null, found = null }) {
  const isFinal = status !== "sending" && status !== "running";
  return {
    id, parent: parent ?? "", role, status: isFinal ? status : "complete", parts, model,
    finish_reason, edited, sources, found,
  };
}
