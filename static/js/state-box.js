// @ts-check
/** What stands where a list would be: that there is nothing, or what went wrong, and the way out. */

import { element, icon } from "./dom.js";

/**
 * @param {HTMLElement} box
 * @param {{icon: string, title: string, text: string, action?: {words: string, run: () => void}} | null} state
 */
export function stateBox(box, state) {
  box.hidden = state === null;
  if (!state) return box.replaceChildren();
  const children = [icon(state.icon), element("p", { class: "documents__state-title" }, [state.title]), element("p", {}, [state.text])];
  if (state.action) {
    const button = element("button", { type: "button", class: "button" }, [state.action.words]);
    button.addEventListener("click", state.action.run);
    children.push(button);
  }
  box.replaceChildren(...children);
}
