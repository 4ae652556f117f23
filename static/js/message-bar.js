// @ts-check
/** What can be done with a message: its row of buttons, and which version of several it is. */

import { find, setText } from "./dom.js";
import { textOf } from "./parts.js";

/**
 * @typedef {import("./conversation-store.js").Message} Message
 * @typedef {object} Place where a message stands among its siblings
 * @property {number} index
 * @property {number} count
 * @property {boolean} isBeside it stands side by side with others until one is chosen
 * @property {boolean} isTemporary the server knows nothing of it
 */

/**
 * @param {HTMLElement} root of the message
 * @param {Message} message
 * @param {Place} place
 */
export function showBar(root, message, { index, count, isBeside, isTemporary }) {
  const isSaved = message.status !== "sending";
  const isFinal = isSaved && message.status !== "running";
  const isAnswer = message.role === "assistant";
  const hasText = textOf(message.parts) !== "";
  const isThere = isFinal && message.status !== "deleted";
  const shown = {
    "[data-copy]": isThere && hasText,
    "[data-act=good]": isThere && isAnswer && hasText && !isTemporary && !message.edited,
    "[data-act=bad]": isThere && isAnswer && hasText && !isTemporary && !message.edited,
    "[data-act=edit]": isThere && (!isAnswer || hasText) && !isBeside,
    "[data-act=regenerate]": isThere && isAnswer && !isBeside,
    ".message__actions [data-trace]": isThere && isAnswer && !message.edited && !isTemporary,
    "[data-act=more]": isThere,
    "[data-act=choose]": isBeside && isSaved,
    ".versions": count > 1 && !isBeside && isSaved,
    ".message__actions": isThere,
  };
  for (const [part, isShown] of Object.entries(shown)) find(root, part).hidden = !isShown;
  for (const rating of ["good", "bad"]) {
    find(root, `[data-act=${rating}]`).setAttribute("aria-pressed", String(message.feedback?.rating === rating));
  }
  setText(find(root, "[data-version]"), `${index + 1}/${count}`);
  // Not `disabled`: the focus stays where the keys are.
  find(root, "[data-act=older]").setAttribute("aria-disabled", String(index === 0));
  find(root, "[data-act=newer]").setAttribute("aria-disabled", String(index === count - 1));
}

/**
 * Whether an answer ended in the middle and can be gone on with.
 * @param {Message} message
 */
export function isCut({ role, status, finish_reason, parts }) {
  if (role !== "assistant" || !textOf(parts)) return false;
  return status === "stopped" || status === "failed" || (status === "complete" && finish_reason === "length");
}
