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

/** @param {{title: string} | null} conversation */
export function setTitle(conversation) {
  setText(find(document, "#title"), conversation?.title || gettext("New chat"));
  document.title = conversation?.title ? `${conversation.title} · Vitrine` : "Vitrine";
}

/** @param {(conversation: string | null, message: string | null) => void} show */
export function onBackAndForward(show) {
  addEventListener("popstate", () => {
    keepPlace(location.pathname);
    show(conversationAt(location.pathname), wantedMessage());
  });
}

keepPlace(location.pathname);
