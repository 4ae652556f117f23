// @ts-check
/** Opens the search at once, so that no key is lost; what finds is loaded with the first wish. */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";

/**
 * @param {import("./api.js").Api} api
 * @returns {() => Promise<void>} shows it with what was typed last, chosen: typing begins anew
 */
export function searchDoor(api) {
  const dialog = find(document, "#palette");
  const palette = /** @type {import("./search-palette.js").SearchPalette} */ (find(dialog, "search-palette"));
  const input = find(dialog, "input");
  return async () => {
    if (dialog.open) return;
    dialog.showModal();
    input.focus();
    input.select();
    palette.ariaBusy = "true";
    try {
      await import("./search-palette.js");
      palette.search(api);
    } catch {
      palette.ariaBusy = null;
      for (const place of [".palette__state", "[data-count]"]) setText(find(dialog, place), gettext("The server cannot be reached."));
    }
  };
}
