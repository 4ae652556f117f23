// @ts-check
/** What is on the pages of the settings, on their own or over the chat: what this browser remembers is saved at once. */

import { copyText, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { KeyboardSettings } from "./keyboard-settings.js";
import { showLocalTimes } from "./local-times.js";
import { preference, remember } from "./preferences.js";
import "./settings-search.js";
import "./sign-out.js";
import { setLook, setTheme, theme } from "./theme.js";

/** @param {ParentNode} root that has one of the pages */
export function showSettings(root) {
  showChoices(root);
  showLanguage(root);
  showNotices(root);
  showKeeping(root);
  showKeys(root);
  showSecret(root);
  showLocalTimes(root);
  showHere(root);
  showZone(root);
  const memories = root.querySelector("[data-memories]");
  if (memories) import("./memory-page.js").then(({ showMemories }) => memories.isConnected && showMemories(root));
  const data = root.querySelector("#data");
  if (data) import("./settings-data.js").then(({ showData }) => data.isConnected && showData(root)); // unless it was left
}

/** @param {ParentNode} root */
function showChoices(root) {
  bindChoice(root, "theme", theme(), setTheme);
  for (const name of /** @type {const} */ (["text-size", "density"])) {
    bindChoice(root, name, preference(name) ?? "normal", (value) => setLook(name, value));
  }
  bindChoice(root, "long-paste", preference("long-paste") ?? "file", (value) => remember("long-paste", value));
  bindChoice(root, "send-key", preference("send-key") ?? "enter", (value) => remember("send-key", value));
}

/**
 * Keep a group of radio buttons and a preference equal.
 * @param {ParentNode} root
 * @param {string} name
 * @param {string} value
 * @param {(value: string) => void} choose
 */
function bindChoice(root, name, value, choose) {
  for (const radio of root.querySelectorAll(`input[name="${name}"]`)) {
    const input = /** @type {HTMLInputElement} */ (radio);
    input.checked = input.value === value;
    input.addEventListener("change", () => choose(input.value));
  }
}

/** A time zone that nobody has chosen yet is the reader's own. @param {ParentNode} root */
function showZone(root) {
  const select = /** @type {HTMLSelectElement | null} */ (root.querySelector("[data-own-zone]"));
  if (!select || select.form?.querySelector(".errorlist")) return;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...select.options].some(({ value }) => value === own)) select.value = own;
}

/** The language is saved as it is chosen, and pages that are open are told. @param {ParentNode} root */
function showLanguage(root) {
  const form = /** @type {HTMLFormElement | null} */ (root.querySelector("[data-language]"));
  if (!form) return;
  find(form, "button").hidden = true;
  find(form, "select").addEventListener("change", () => form.requestSubmit());
  form.addEventListener("submit", () => remember("language", `${find(form, "select").value} ${Date.now()}`)); // only changes are told
}

/**
 * Notices of the system, which the browser has to allow.
 * @param {ParentNode} root
 */
function showNotices(root) {
  const problem = root.querySelector("[data-notify-problem]");
  if (!problem) return;
  const isNotified = preference("notify") === "yes" && globalThis.Notification?.permission === "granted";
  bindChoice(root, "notify", isNotified ? "yes" : "no", async (value) => {
    const isWanted = value === "yes";
    const isAllowed = isWanted && (await globalThis.Notification?.requestPermission()) === "granted";
    remember("notify", isAllowed ? "yes" : null);
    const isRefused = isWanted && !isAllowed;
    setText(problem, isRefused ? gettext("The browser does not allow it for this site.") : "");
    if (isRefused) /** @type {HTMLInputElement} */ (find(root, "input[name=notify][value=no]")).checked = true;
  });
}

/** @param {ParentNode} root */
function showKeeping(root) {
  const keeping = /** @type {HTMLElement | null} */ (root.querySelector("[data-keep-chats]"));
  if (!keeping) return;
  const user = keeping.dataset.keepChats ?? "";
  find(keeping, "[data-needs-https]").hidden = Boolean(globalThis.caches);
  for (const input of keeping.querySelectorAll("input")) input.disabled = !globalThis.caches;
  bindChoice(root, "keep-chats", preference("keep-chats") === user ? "yes" : "no", async (value) => {
    remember("keep-chats", value === "yes" ? user : null);
    if (value === "no") await (await import("./kept-chats.js")).forgetChats();
    else keeping.dispatchEvent(new Event("keep-chats", { bubbles: true })); // the chat below begins with what it shows
  });
}

/** @param {ParentNode} root */
function showKeys(root) {
  const keys = /** @type {HTMLElement | null} */ (root.querySelector("[data-shortcuts]"));
  if (keys) new KeyboardSettings(keys, find(root, "[data-shortcuts-status]"), find(root, "[data-shortcuts-reset]"));
}

/** A new API key, or one for an authenticator app. @param {ParentNode} root */
function showSecret(root) {
  const secret = /** @type {HTMLElement | null} */ (root.querySelector("#secret"));
  if (!secret) return;
  const input = secret instanceof HTMLInputElement ? secret : null;
  const button = /** @type {HTMLButtonElement} */ (find(root, "[data-copy-secret]"));
  button.hidden = false;
  input?.addEventListener("focus", () => input.select());
  button.addEventListener("click", async () => {
    button.textContent = await copyText(input?.value ?? secret.innerText).then(() => gettext("Copied"), ({ message }) => message);
  });
}

/** Where the pages stand in one row, the one that is shown is in sight. @param {ParentNode} root */
function showHere(root) {
  const pages = root.querySelector(".settings__pages");
  const here = pages?.querySelector("[aria-current]");
  if (!pages || !here || pages.scrollWidth <= pages.clientWidth) return;
  const [row, link] = [pages.getBoundingClientRect(), here.getBoundingClientRect()];
  pages.scrollBy({ left: link.left + link.width / 2 - row.left - row.width / 2, behavior: "instant" });
}
