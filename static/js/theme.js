// @ts-check
/** How pages look in this browser: light or dark, sizes. theme-boot.js applies it before the first paint. */

import { preference, remember } from "./preferences.js";

/** @returns {"light" | "dark" | "system"} */
export function theme() {
  const kept = preference("theme");
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** @param {string} value */
export function setTheme(value) {
  const isSystem = value !== "light" && value !== "dark";
  remember("theme", isSystem ? null : value);
  if (isSystem) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
}

/**
 * @param {"text-size" | "density"} name
 * @param {string} value "normal" is what is kept of neither
 */
export function setLook(name, value) {
  const isNormal = value === "normal";
  remember(name, isNormal ? null : value);
  if (isNormal) document.documentElement.removeAttribute(`data-${name}`);
  else document.documentElement.setAttribute(`data-${name}`, value);
}

/** Follow a choice that was made in another tab. */
export function followTheme() {
  addEventListener("storage", ({ key, newValue }) => {
    if (key === "vitrine.theme") setTheme(newValue ?? "system");
    if (key === "vitrine.text-size") setLook("text-size", newValue ?? "normal");
    if (key === "vitrine.density") setLook("density", newValue ?? "normal");
  });
}
