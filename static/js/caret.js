// @ts-check
/** Writing into a text box in its user's place. */

/**
 * Put a text where the selection is, as if it was typed, so that undo brings back what was there.
 * @param {HTMLTextAreaElement} input
 * @param {string} text empty deletes the selection
 */
export function insertText(input, text) {
  input.focus();
  // Behind a dialog it gets no focus, and the browser would write into what has it.
  const canType = document.activeElement === input;
  if (canType && (text ? document.execCommand("insertText", false, text) : document.execCommand("delete"))) return;
  input.setRangeText(text, input.selectionStart, input.selectionEnd, "end");
  input.dispatchEvent(new Event("input", { bubbles: true }));
}
