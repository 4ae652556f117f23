// @ts-check
/** The quiet line in a chat that is too long for its model: what stands above it is not read. Loaded with
 * the first such chat. */

import { element, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";

/** @typedef {import("./left-out.js").LeftOut} LeftOut */

/** @param {LeftOut} left */
function leftOutWords({ num_messages: count, summary }) {
  const words = ngettext("1 earlier message is not in the model’s view", "%(n)s earlier messages are not in the model’s view", count);
  return summary ? `${words}. ${gettext("A summary stands in.")}` : words;
}

/**
 * Put the line in front of the message where the model's view begins, and take an old one away.
 * @param {HTMLElement} list
 * @param {LeftOut | null} left
 * @param {(id: string) => Promise<{text: string}>} readSummary
 */
export function showLine(list, left, readSummary) {
  showStopped(list, left?.stopped ?? []);
  const old = /** @type {HTMLElement | null} */ (list.querySelector(".left-out:not([data-preview], [data-stopped])"));
  const message = left?.num_messages && list.querySelector(`[data-message="${CSS.escape(left.before)}"]`);
  if (!left || !message) {
    old?.remove();
    return;
  }
  const key = JSON.stringify(left);
  if (old?.dataset.key === key && old.nextElementSibling === message) return;
  old?.remove();
  const line = left.summary ? summarised(left, readSummary) : element("p", {}, [leftOutWords(left)]);
  message.before(element("div", { class: "left-out", role: "note", "data-key": key }, [line]));
}

/**
 * Put a line in front of each question that a policy keeps from the model, and take old ones away.
 * @param {HTMLElement} list
 * @param {string[]} ids
 */
function showStopped(list, ids) {
  for (const old of list.querySelectorAll("[data-stopped]")) old.remove();
  for (const id of ids) {
    const words = gettext("A policy keeps this question and its answer from the model by now");
    list.querySelector(`[data-message="${CSS.escape(id)}"]`)?.before(element("div", { class: "left-out", role: "note", "data-stopped": "" }, [element("p", {}, [words])]));
  }
}

/**
 * Put a line where the model's view would begin with the message that is being written.
 * @param {HTMLElement} list
 * @param {{before: string, num_messages: number} | null} left
 */
export function showPreview(list, left) {
  const old = /** @type {HTMLElement | null} */ (list.querySelector("[data-preview]"));
  const message = left && list.querySelector(`[data-message="${CSS.escape(left.before)}"]`);
  if (!left || !message) return old?.remove();
  const line = old ?? element("div", { class: "left-out", role: "note", "data-preview": "" }, [element("p")]);
  const { num_messages: count } = left;
  setText(line.firstElementChild ?? line, ngettext("With your message, 1 message above leaves the model’s view", "With your message, %(n)s messages above leave the model’s view", count));
  if (line.nextElementSibling !== message) message.before(line);
}

/**
 * @param {LeftOut} left
 * @param {(id: string) => Promise<{text: string}>} readSummary
 */
function summarised(left, readSummary) {
  const text = element("p", { class: "left-out__summary", dir: "auto" }, [gettext("Reading the summary")]);
  const details = element("details", {}, [element("summary", {}, [leftOutWords(left)]), text]);
  const read = async () => {
    try {
      setText(text, (await readSummary(/** @type {string} */ (left.summary))).text);
    } catch (error) {
      setText(text, /** @type {Error} */ (error).message);
    }
  };
  details.addEventListener("toggle", read, { once: true });
  return details;
}
