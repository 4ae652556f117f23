// @ts-check
/** The chat page begins: with what the server has put into it, or what its address leads to. */

import { chooseAssistant } from "./chat-composing.js";
import { budgetLine } from "./chat-models.js";
import { show } from "./chat-moving.js";
import "./chat-news.js";
import {
  api, bootstrap, choice, composer, drafts, foot, page, picker, queue, scroller, session, setup, setupButton, sidebar, socket, tell,
  tellOf, toasts,
} from "./chat-parts.js";
import { temporary } from "./chat-temporary.js";
import { find } from "./dom.js";
import { gettext } from "./i18n.js";
import { conversationAt, onBackAndForward, wantedMessage } from "./navigation.js";
import { placeAllPopovers } from "./popover.js";
import { preference } from "./preferences.js";
import { keepShell } from "./pwa.js";
import { followKeyboard } from "./scroll.js";
import { onSignOut } from "./sign-out.js";
import { followTheme } from "./theme.js";

const RELOAD_MS = 60_000;

// --- the window --------------------------------------------------------------------------------

new ResizeObserver(([{ borderBoxSize }]) => {
  for (const one of [scroller, toasts]) one.style.setProperty("--foot-size", `${borderBoxSize[0].blockSize}px`);
}).observe(foot);
followKeyboard();
placeAllPopovers();
followTheme();
onBackAndForward(show);
addEventListener("online", () => socket.connect());
addEventListener("offline", () => socket.verify()); // a server on this machine may still be there
addEventListener("beforeunload", (event) => (temporary.wouldBeLost || composer.picked.wouldLose) && event.preventDefault());
document.addEventListener("visibilitychange", () => document.hidden || socket.connect());
addEventListener("storage", ({ key, newValue }) => {
  if (key === "vitrine.language" && newValue) offerReload(gettext("Another language was chosen in the settings."), () => location.reload());
});

// --- what is done with the whole chat ----------------------------------------------------------

setupButton.addEventListener("click", () => setup.open(session.store.conversation));
find(page, "[data-chat-menu]").addEventListener("click", (/** @type {Event} */ { currentTarget }) => {
  const { conversation } = session.store;
  if (conversation) sidebar.openMenu(conversation, /** @type {HTMLElement} */ (currentTarget));
});
document.addEventListener("click", async ({ target }) => {
  const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-chat-tool]"));
  const { store } = session;
  const menu = /** @type {HTMLElement | null | undefined} */ (button?.closest("#chat-menu"));
  const id = menu?.dataset.conversation ?? store.conversation?.id; // by the time that the tool is loaded it may be another one
  if (!button || !id) return;
  try {
    await (await import("./chat-tools.js")).openChatTool(button.dataset.chatTool ?? "", id, store, api);
  } catch (error) {
    tellOf(error);
  }
});

// --- begin -------------------------------------------------------------------------------------

session.user = page.dataset.user;
session.models = choice.models = bootstrap.models;
choice.begin(bootstrap.chosen);
sidebar.api = api;
composer.transcribe = (sound, signal) => api.transcribe(sound, signal);
composer.drafts = queue.drafts = drafts;
composer.setupOfNew = session.setupOfTemporary = () => setup.fieldsOfNew;
picker.assistants = bootstrap.assistants;
if (bootstrap.budgets.length) budgetLine().then((line) => line.show(bootstrap.budgets));
onSignOut(() => drafts.close());
sidebar.show(bootstrap.sidebar);
sidebar.setCurrent(bootstrap.conversation?.id ?? null);
keepShell((reload) => offerReload(gettext("A new version of Vitrine is there."), reload));
session.open(bootstrap.conversation, bootstrap.messages, wantedMessage());
const asked = conversationAt(location.pathname);
if (asked && !bootstrap.conversation) {
  session.doubt(); // a kept page, without a connection
  show(asked, wantedMessage());
}
if (preference("keep-chats")) keepChats();
document.addEventListener("keep-chats", keepChats);
socket.connect();
const wantedAssistant = new URLSearchParams(location.search).get("assistant");
if (wantedAssistant && !bootstrap.conversation) {
  history.replaceState(null, "", "/");
  chooseAssistant(wantedAssistant);
}
if (location.search && !bootstrap.conversation) takeShared();

/**
 * @param {string} words
 * @param {() => void} run
 */
function offerReload(words, run) {
  tell(words, { action: gettext("Reload"), run, shownMs: RELOAD_MS });
}

function keepChats() {
  import("./kept-chats.js").then((kept) => kept.keepChats(session, sidebar), () => {});
}

async function takeShared() {
  const { sharedText } = await import("./shared-in.js");
  const text = sharedText(location.search);
  if (!text) return;
  history.replaceState(null, "", "/");
  composer.takeBack({ text });
}
