// @ts-check
/** Addresses: one per chat, without reloading; back and forward work. */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { keepPlace } from "./preferences.js";

const CHAT = /^\/c\/([0-9a-f-]{36})$/;

/** Of the chat that is shown, without what lies over it. */
let shown = "";

function chatAddress() {
  return location.pathname + location.search;
}

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
  if (chatAddress() !== url) history[how](null, "", url + (settingsAt() ? location.hash : ""));
  shown = url;
  keepPlace(location.pathname);
}

/** The page of the settings that lies over the chat, if any. @returns {string | null} its own address */
export function settingsAt() {
  return location.hash.startsWith("#/settings/") ? location.hash.slice(1) : null;
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

function nameTab() {
  document.title = `${hasNews ? "● " : ""}${name ? `${name} · ` : ""}Vitrine`;
}

/** @param {(conversation: string | null, message: string | null) => void} show */
export function onBackAndForward(show) {
  shown = chatAddress();
  keepPlace(location.pathname);
  document.addEventListener("visibilitychange", () => document.hidden || markNews());
  addEventListener("popstate", () => {
    if (chatAddress() === shown) return; // only what lies over it has changed
    shown = chatAddress();
    keepPlace(location.pathname);
    show(conversationAt(location.pathname), wantedMessage());
  });
}
