// @ts-check
/** What a page keeps of a chat, to be read without a connection (kept-chats.js). */

/**
 * What is kept of a conversation: as GET /api/conversations/ID has it. Null: nothing, for it is not
 * whole or has no place on the server.
 * @param {import("./conversation-store.js").ConversationStore} store
 */
export function copyOf(store) {
  const { conversation, isTemporary, isBusy } = store;
  if (!conversation || isTemporary || isBusy) return null;
  const messages = [...store.messages.values()].map(({ key, ...message }) => message);
  return { conversation, messages };
}
