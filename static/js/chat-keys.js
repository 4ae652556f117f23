// @ts-check
/** What the keys do on the chat page, and the way to the search and the settings, which have keys too. */

import { withOwnKeys } from "./bindings.js";
import { actions } from "./chat-acting.js";
import { showModels } from "./chat-models.js";
import { openChat, startNew } from "./chat-moving.js";
import { api, composer, list, picker, scroll, session, sidebar, tell } from "./chat-parts.js";
import { stop } from "./chat-sending.js";
import { temporary } from "./chat-temporary.js";
import { chatShortcuts } from "./commands.js";
import { find } from "./dom.js";
import { preference } from "./preferences.js";
import { searchDoor } from "./search-door.js";
import { listenForSettings } from "./settings-door.js";
import { keyWords, listenForShortcuts } from "./shortcuts.js";
import { toggleSidebar } from "./sidebar-panel.js";
import { whyNoFiles } from "./source-door.js";

const search = searchDoor(api);
const openSettings = listenForSettings({
  mayReload: () => !session.store.isTemporary && !composer.picked.wouldLose,
  changed: async () => {
    picker.assistants = await api.assistants();
    showModels();
  },
});
/** Not while another chat is on its way: it would be done to the one before. @param {() => unknown} act */
const here = (act) => () => !list.ariaBusy && act();
const usual = chatShortcuts(
  {
    startNew,
    search,
    toggleSidebar,
    deleteShown: here(deleteShown),
    showShortcuts,
    openSettings,
    focusComposer: () => composer.focusInput(),
    stop: here(() => session.store.isBusy && stop()),
    chooseModel: () => picker.toggle(),
    toStart: () => scroll.toStart(),
    toEnd: () => scroll.toEnd(),
    toggleTemporary: () => temporary.toggle(),
    regenerate: here(() => actions.regenerateLast()),
    goOn: here(() => actions.continueLast()),
    olderVersion: here(() => actions.focused !== null && actions.step(actions.focused, -1)),
    attach: () => press(composer, ".composer__attach") || tell(whyNoFiles(composer) ?? ""), // never the page's source
    allow: here(() => press(list, "[data-act=allow]")),
    deny: here(() => press(list, "[data-act=deny]")),
    newerVersion: here(() => actions.focused !== null && actions.step(actions.focused, 1)),
  },
  copyLast,
);
const shortcuts = withOwnKeys(usual);

listenForShortcuts(shortcuts);
composer.stopKeys = keysOf("stop");
if (preference("shortcuts")) followKeys();
document.addEventListener("shortcuts", followKeys);
find(document, "[data-show-shortcuts]").addEventListener("click", showShortcuts);
sidebar.addEventListener("search", search);
find(document, "search-palette").addEventListener("open", async (/** @type {CustomEvent} */ { detail }) => {
  const { conversation, message, url, text } = detail;
  await openChat({ id: conversation.id, url }, message);
  if (message) (await import("./found-words.js")).markWords(list.rootOf(message), text);
});

/** @param {string} name of a shortcut */
export function keysOf(name) {
  return keyWords(/** @type {import("./shortcuts.js").Shortcut} */ (shortcuts.find((one) => one.name === name)));
}

function followKeys() {
  import("./key-hints.js").then((hints) => hints.followKeys(usual, shortcuts, composer), () => {});
}

async function showShortcuts() {
  find(document, "#account-menu").hidePopover();
  const dialog = find(document, "#shortcuts");
  const help = await import("./shortcut-help.js").catch(() => null);
  help?.fillHelp(dialog, shortcuts);
  if (!dialog.open) dialog.showModal();
}

/**
 * @param {string} selector
 * @param {string} words
 */
function copyLast(selector, words) {
  const found = [...list.querySelectorAll(selector)].at(-1);
  if (!found) return;
  /** @type {HTMLElement} */ (found).click();
  tell(words);
}

/** The last button that is seen. @param {HTMLElement} root @param {string} selector */
function press(root, selector) {
  const buttons = /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(selector));
  const button = [...buttons].findLast(({ offsetParent }) => offsetParent !== null);
  button?.click();
  return button !== undefined;
}

function deleteShown() {
  const id = session.store.conversation?.id;
  if (id) sidebar.askToDelete(id);
}
