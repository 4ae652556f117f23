// @ts-check
/** Something has happened; nobody may be looking. */

import { markNews } from "./navigation.js";
import { preference } from "./preferences.js";

/**
 * @param {string | null} words
 * @param {() => void} open
 */
export function tellAway(words, open) {
  markNews();
  if (!words || !document.hidden || preference("notify") !== "yes") return;
  import("./notify.js").then(({ notify }) => notify(words, open)).catch(() => {}); // the tab is marked all the same
}
