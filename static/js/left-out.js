// @ts-check
/** What a chat's model does not see any more, and its line in the chat (left-out-line.js). */

/** @typedef {{before: string, num_messages: number, summary: string | null, stopped?: string[]}} LeftOut */

/**
 * What the last answer's model was not shown.
 * @param {{role: string, left_out?: LeftOut | null}[]} path
 * @returns {LeftOut | null}
 */
export function leftOutOf(path) {
  const left = path.findLast((message) => message.role === "assistant")?.left_out ?? null;
  return left?.num_messages || left?.stopped?.length ? left : null;
}

/**
 * What would go with the message that is being written.
 * @param {HTMLElement} list
 * @param {{before: string, num_messages: number, is_new: boolean} | null} left
 */
export async function previewLeftOut(list, left) {
  const next = left?.is_new ? left : null;
  if (!next && !list.querySelector("[data-preview]")) return;
  (await import("./left-out-line.js")).showPreview(list, next);
}

/**
 * @param {HTMLElement} list
 * @param {LeftOut | null} left
 * @param {(id: string) => Promise<{text: string}>} readSummary
 */
export async function showLeftOut(list, left, readSummary) {
  if (!left && !list.querySelector(".left-out:not([data-preview])")) return;
  (await import("./left-out-line.js")).showLine(list, left, readSummary);
}
