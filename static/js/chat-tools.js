// @ts-check
/** Sharing and exporting, from the bar of the chat or from a chat's menu. Loaded when it is asked for. */

import { ConversationStore } from "./conversation-store.js";

/**
 * @param {string} tool
 * @param {string} id of the conversation
 * @param {ConversationStore} shown
 * @param {import("./api.js").Api} api
 */
export async function openChatTool(tool, id, shown, api) {
  if (tool === "share") {
    const path = id === shown.conversation?.id ? shown.path() : await branchOf(api, id);
    const { openShareDialog } = await import("./share-dialog.js");
    await openShareDialog(api, id, path);
  } else {
    const { openExportDialog } = await import("./export-dialog.js");
    openExportDialog(id);
  }
}

/**
 * @param {import("./api.js").Api} api
 * @param {string} id
 */
async function branchOf(api, id) {
  const { conversation, messages } = await api.conversation(id);
  return new ConversationStore(conversation, messages).path();
}
