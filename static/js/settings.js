// @ts-check
/** The settings page: what this browser remembers, saved at once. */

import { preference, remember } from "./preferences.js";
import "./sign-out.js";
import { followTheme, setTheme, theme } from "./theme.js";

/**
 * Keep a group of radio buttons and a preference equal.
 * @param {string} name
 * @param {string} value
 * @param {(value: string) => void} choose
 */
function bindChoice(name, value, choose) {
  for (const radio of document.querySelectorAll(`input[name="${name}"]`)) {
    const input = /** @type {HTMLInputElement} */ (radio);
    input.checked = input.value === value;
    input.addEventListener("change", () => choose(input.value));
  }
}

bindChoice("theme", theme(), setTheme);
bindChoice("send-key", preference("send-key") ?? "enter", (value) => remember("send-key", value));
followTheme();
