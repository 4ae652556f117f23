// @ts-check
/** Addresses: one per chat, without reloading; back and forward work. */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { keepPlace } from "./preferences.js";

const CHAT = /^\/c\/([0-9a-f-]{36})$/;

/**
 * @param {string} path
 * @returns {string | null} the conversation of an address, null for a new chat
 */
export function conversationAt(path) {
  return path.match(CHAT)?.[1] ?? null;
}

/** The message that the address leads to, if any. */
export function wantedMessage() {
  return new URLSearchParams(location.search).get("m");
}

/**
 * @param {{url: string} | null} conversation its address may lead to a message of it
 * @param {"pushState" | "replaceState"} [how]
 */
export function goTo(conversation, how = "pushState") {
  const url = conversation?.url ?? "/";
  if (location.pathname + location.search !== url) history[how](null, "", url);
  keepPlace(location.pathname);
}

let name = "";
/** Something has happened that nobody has looked at. */
let hasNews = false;

/** @param {{title: string} | null} conversation */
export function setTitle(conversation) {
  name = conversation?.title ?? "";
  setText(find(document, "#title"), name || gettext("New chat"));
  nameTab();
}

/** The tab of a hidden page says that there are news, until somebody looks. */
export function markNews() {
  if (document.hidden === hasNews) return;
  hasNews = document.hidden;
  nameTab();
}
document.addEventListener("visibilitychange", () => document.hidden || markNews());

function nameTab() {
  document.title = `${hasNews ? "● " : ""}${name ? `${name} · ` : ""}Vitrine`;
}

/** @param {(conversation: string | null, message: string | null) => void} show */
export function onBackAndForward(show) {
  addEventListener("popstate", () => {
    keepPlace(location.pathname);
    show(conversationAt(location.pathname), wantedMessage());
  });
}

keepPlace(location.pathname);
