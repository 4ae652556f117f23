// @ts-check
/**
 * What was wrong with an answer, for those who run the site.
 *
 * @typedef {{rating: "good" | "bad", reasons: string[], comment: string}} Feedback
 */

import { find } from "./dom.js";
import { FormDialog } from "./form-dialog.js";

/** @type {FormDialog | null} */
let asking = null;

/**
 * @param {(feedback: Feedback) => Promise<void>} keep called with what was said, if anything was
 * @returns {Promise<void>} when the dialog is closed
 */
export function askWhatIsWrong(keep) {
  asking ??= new FormDialog(find(document, "#bad-answer"));
  const { dialog, form } = asking;
  form.reset();
  asking.open({}, () => {
    const reasons = [...form.querySelectorAll("[name=reason]:checked")].map(({ value }) => value);
    const comment = form.elements.comment.value.trim();
    return reasons.length || comment ? keep({ rating: "bad", reasons, comment }) : undefined;
  });
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(), { once: true }));
}
