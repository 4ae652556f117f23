// @ts-check
/** Loaded where somebody has chosen other keys: the page's own markup names the usual ones. */

/**
 * Say the keys that are right, also in what a <template> will be copied to.
 * @param {import("./bindings.js").OwnKeys} own
 */
export function renameKeyHints(own) {
  const roots = [document, ...[...document.querySelectorAll("template")].map(({ content }) => content)];
  for (const element of roots.flatMap((root) => [...root.querySelectorAll("[aria-keyshortcuts]")])) {
    const usual = element.getAttribute("aria-keyshortcuts")?.split(" ")[0].toLowerCase().replace("control", "mod");
    const keys = own[usual ?? ""];
    if (!keys) continue;
    const rest = [keys.alt && "Alt", keys.shift && "Shift", keys.key].filter(Boolean).join("+");
    element.setAttribute("aria-keyshortcuts", keys.mod ? `Control+${rest} Meta+${rest}` : rest);
  }
}
