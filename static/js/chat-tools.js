// @ts-check
/**
 * Sharing and exporting, from the bar of the chat or from a chat's menu. What is asked for is loaded
 * when it is asked for.
 */

import { ConversationStore } from "./conversation-store.js";
import { find } from "./dom.js";

/**
 * @param {import("./session.js").ChatSession} session
 * @param {import("./api.js").Api} api
 * @param {(words: string) => void} say
 */
export function listenForChatTools(session, api, say) {
  document.addEventListener("click", async (event) => {
    const button = /** @type {Element} */ (event.target).closest("[data-chat-tool]");
    if (!button) return;
    const menu = /** @type {HTMLElement | null} */ (button.closest("#chat-menu"));
    const shown = session.store.conversation;
    const id = menu?.dataset.conversation ?? shown?.id;
    if (!id) return;
    try {
      const path = id === shown?.id ? session.store.path() : await branchOf(api, id);
      await open(/** @type {HTMLElement} */ (button).dataset.chatTool ?? "", api, id, path);
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
  });
  session.on("path", () => showTools(session));
  session.on("opened", () => showTools(session));
}

/** @param {import("./session.js").ChatSession} session */
function showTools(session) {
  find(document, ".bar__tools").hidden = !session.store.conversation;
}

/**
 * @param {import("./api.js").Api} api
 * @param {string} id
 */
async function branchOf(api, id) {
  const { conversation, messages } = await api.conversation(id);
  return new ConversationStore(conversation, messages).path();
}

/**
 * @param {string} tool
 * @param {import("./api.js").Api} api
 * @param {string} id
 * @param {import("./conversation-store.js").Message[]} path
 */
async function open(tool, api, id, path) {
  if (tool === "share") {
    const { openShareDialog } = await import("./share-dialog.js");
    await openShareDialog(api, id, path);
  } else {
    const { openExportDialog } = await import("./export-dialog.js");
    openExportDialog(id);
  }
}
