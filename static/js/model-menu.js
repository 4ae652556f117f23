// @ts-check
/** Models and assistants in the composer: @ calls them, and whoever is taken answers next. */

import { CaretMenu, replaceCall } from "./caret-menu.js";
import { element } from "./dom.js";
import { gettext } from "./i18n.js";
import { answererAt, answerersFor, answerersOf } from "./answerers.js";

/**
 * @param {HTMLTextAreaElement} input
 * @param {() => {models: any[], assistants: any[]}} known
 * @param {(answerer: import("./answerers.js").Answerer) => void} choose
 */
export function modelMenu(input, known, choose) {
  return new CaretMenu(input, {
    id: "model-menu",
    label: gettext("Who answers"),
    callAt: answererAt,
    find: (query) => answerersFor(answerersOf(known()), query),
    row,
    nothing: () => null,
    take: (answerer, call) => {
      replaceCall(input, call, "");
      choose(answerer);
    },
  });
}

/** @param {import("./answerers.js").Answerer} answerer */
function row({ kind, id, title, about }) {
  return element("li", { id: `answerer-${kind}-${id}`, class: "caret-menu__row", role: "option", "data-answerer": id }, [
    element("span", { class: "caret-menu__name", dir: "auto" }, [`@${title}`]),
    element("span", { class: "caret-menu__text", dir: "auto" }, [about]),
  ]);
}
