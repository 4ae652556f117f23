// @ts-check
/** Addresses: one per chat, without reloading; back and forward work. */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";

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
}

/** The page of the settings that lies over the chat, if any. @returns {string | null} its own address */
export function settingsAt() {
  return location.hash.startsWith("#/settings/") ? location.hash.slice(1) : null;
}

/** @param {{title: string} | null} conversation */
export function setTitle(conversation) {
  setText(find(document, "#title"), conversation?.title || gettext("New chat"));
  document.title = conversation?.title ? `${conversation.title} · Vitrine` : "Vitrine";
}

/** @param {(conversation: string | null, message: string | null) => void} show */
export function onBackAndForward(show) {
  shown = chatAddress();
  addEventListener("popstate", () => {
    if (chatAddress() === shown) return; // only what lies over it has changed
    shown = chatAddress();
    show(conversationAt(location.pathname), wantedMessage());
  });
}
