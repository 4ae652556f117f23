// @ts-check
/** Light, dark or as the system has it; theme-boot.js applies the choice before the first paint. */

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

/** Follow a choice that was made in another tab. */
export function followTheme() {
  addEventListener("storage", ({ key, newValue }) => {
    if (key === "vitrine.theme") setTheme(newValue ?? "system");
  });
}
