// @ts-check
/** The settings page: what this browser remembers, saved at once. */

import "./back-to-chat.js";
import { copyText, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { KeyboardSettings } from "./keyboard-settings.js";
import { preference, remember } from "./preferences.js";
import "./settings-search.js";
import "./sign-out.js";
import { followTheme, setLook, setTheme, theme } from "./theme.js";

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
for (const name of /** @type {const} */ (["text-size", "density"])) {
  bindChoice(name, preference(name) ?? "normal", (value) => setLook(name, value));
}
bindChoice("long-paste", preference("long-paste") ?? "file", (value) => remember("long-paste", value));
bindChoice("send-key", preference("send-key") ?? "enter", (value) => remember("send-key", value));
const isNotified = preference("notify") === "yes" && globalThis.Notification?.permission === "granted";
bindChoice("notify", isNotified ? "yes" : "no", async (value) => {
  const isWanted = value === "yes";
  const isAllowed = isWanted && (await globalThis.Notification?.requestPermission()) === "granted";
  remember("notify", isAllowed ? "yes" : null);
  const problem = isWanted && !isAllowed ? gettext("The browser does not allow it for this site.") : "";
  setText(find(document, "[data-notify-problem]"), problem);
  if (problem) find(document, "input[name=notify][value=no]").checked = true;
});
const keeping = /** @type {HTMLElement | null} */ (document.querySelector("[data-keep-chats]"));
if (keeping) {
  const user = keeping.dataset.keepChats ?? "";
  find(keeping, "[data-needs-https]").hidden = Boolean(globalThis.caches);
  for (const input of keeping.querySelectorAll("input")) input.disabled = !globalThis.caches;
  bindChoice("keep-chats", preference("keep-chats") === user ? "yes" : "no", async (value) => {
    remember("keep-chats", value === "yes" ? user : null);
    if (value === "no") await (await import("./kept-chats.js")).forgetChats();
  });
}
const keys = /** @type {HTMLElement | null} */ (document.querySelector("[data-shortcuts]"));
if (keys) {
  new KeyboardSettings(keys, find(document, "[data-shortcuts-status]"), find(document, "[data-shortcuts-reset]"));
}
followTheme();

const secret = /** @type {HTMLInputElement | null} */ (document.querySelector("#secret"));
if (secret) {
  const button = /** @type {HTMLButtonElement} */ (find(document, "[data-copy-secret]"));
  button.hidden = false;
  secret.addEventListener("focus", () => secret.select());
  button.addEventListener("click", async () => {
    button.textContent = await copyText(secret.value).then(() => gettext("Copied"), ({ message }) => message);
  });
}
