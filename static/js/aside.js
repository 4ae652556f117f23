// @ts-check
/** A quiet line that opens: what an answer thought, and which tools it used. */

import { element, icon } from "./dom.js";

/**
 * @param {string} iconName
 * @param {string} className
 */
export function aside(iconName, className) {
  const summary = element("span");
  const body = element("div", { class: "aside__body" });
  const head = element("summary", {}, [icon(iconName), summary, icon("chevron-down")]);
  return { root: element("details", { class: className }, [head, body]), summary, body };
}
