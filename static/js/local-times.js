// @ts-check
/** Times that the server has written (webapp/templatetags/local_times.py), by the clock and in the zone of the reader. */

import { LOCALE } from "./i18n.js";
import { fullDate } from "./words.js";

/** @type {Record<string, (date: Date) => string>} */
const SHOWN = {
  day: (date) => date.toLocaleDateString(LOCALE, { dateStyle: "long" }),
  time: (date) => date.toLocaleString(LOCALE, { dateStyle: "long", timeStyle: "short" }),
};

/** A span such as "3 days" stays, and tells its beginning or end to whoever points at it. @param {ParentNode} root */
export function showLocalTimes(root) {
  for (const time of /** @type {NodeListOf<HTMLTimeElement>} */ (root.querySelectorAll("time[data-shown]"))) {
    const words = SHOWN[time.dataset.shown ?? ""]?.(new Date(time.dateTime));
    if (words) time.textContent = words;
    time.title = fullDate(time.dateTime);
  }
}
