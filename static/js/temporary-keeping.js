// @ts-check
/** A temporary chat becomes a chat like any other. Loaded when its reader keeps it. */

import { gettext } from "./i18n.js";
import { branch, said } from "./temporary.js";

/**
 * @param {import("./temporary-chat.js").TemporaryChat["page"]} page
 * @param {import("./conversation-store.js").ConversationStore} store
 * @param {string} clientId
 */
export async function keep({ session, api, tell, kept, model }, store, clientId) {
  const messages = everything(store);
  const temporary = { client_id: clientId, model: model() ?? "", messages, ...session.setupOfTemporary() };
  const made = await api.keep(temporary);
  if (store === session.store) kept(made.conversation, made.messages);
  session.emit("conversations", made.conversation);
  tell(gettext("The chat is kept, and listed with the others."));
}

/**
 * All messages, as they are kept: without what is deleted. Pure.
 * @param {import("./conversation-store.js").ConversationStore} store
 */
export function everything(store) {
  const there = [...store.messages.values()].filter(({ status }) => status !== "deleted");
  return there.map((message) => {
    const above = branch(store, message.parent).at(-1);
    return { ...said(message), parent: above?.id ?? "" };
  });
}
