// @ts-check
/** What an answer has remembered of its reader, in the place of the call that did it, and how to take it back. */

import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";

/** Taken back on this page: the call itself stays as it was. @type {Set<string>} */
const forgotten = new Set();

/**
 * @param {HTMLElement} call the call of the tool, as any other is shown
 * @param {{content: string, is_error: boolean}} outcome
 */
export function showRemembered(call, { content, is_error }) {
  if (is_error || !call.isConnected || call.previousElementSibling?.matches(".remembered")) return;
  const value = valueOf(content);
  if (!value) return;
  const { memory, remembered, is_new } = value;
  const words = is_new ? gettext("Remembered: %(text)s", { text: remembered }) : gettext("Remembered already: %(text)s", { text: remembered });
  const undo = element("button", { type: "button", class: "small-button", "data-act": "forget", "data-memory": memory }, [gettext("Undo")]);
  const line = element("p", { class: "remembered", dir: "auto" }, [icon("brain"), element("span", {}, [words])]);
  if (is_new) line.append(undo);
  call.before(line);
  call.hidden = true;
  if (forgotten.has(memory)) showForgotten(line);
}

/** @param {string} content as chat/remembering.py writes it @returns {any} */
function valueOf(content) {
  try {
    const value = JSON.parse(content);
    return typeof value?.remembered === "string" && typeof value.memory === "string" ? value : null;
  } catch {
    return null;
  }
}

/**
 * What is gone already is as good as taken back.
 * @param {HTMLElement} button
 * @param {import("./api.js").Api} api
 */
export async function forgetRemembered(button, api) {
  const { memory = "" } = button.dataset;
  await api.memory("DELETE", memory).catch((error) => {
    if (error.code !== "not_found") throw error;
  });
  forgotten.add(memory);
  const line = button.closest(".remembered");
  if (line) showForgotten(line);
}

/** @param {Element} line */
function showForgotten(line) {
  line.querySelector("button")?.remove();
  line.querySelector("span")?.replaceChildren(gettext("It is forgotten."));
}
