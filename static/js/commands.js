// @ts-check
/** What the keyboard can do on the chat page (the help dialog shows the same list). */

import { gettext } from "./i18n.js";

/**
 * @param {Record<"startNew" | "toggleTemporary" | "search" | "toggleSidebar" | "focusComposer" | "stop" | "chooseModel" |
 *   "deleteShown" | "toStart" | "toEnd" | "showShortcuts" | "regenerate" | "goOn" | "olderVersion" |
 *   "newerVersion" | "attach" | "allow" | "deny", () => unknown> & {openSettings: (address: string) => unknown}} actions
 * @param {(selector: string, words: string) => void} copyLast press the last copy button of a kind
 * @returns {import("./shortcuts.js").Shortcut[]}
 */
export function chatShortcuts(actions, copyLast) {
  const mod = { mod: true };
  const both = { mod: true, shift: true };
  const copyAnswer = () => copyLast(".message--assistant [data-copy]", gettext("The answer is copied."));
  const copyCode = () => copyLast("[data-copy-code]", gettext("The code is copied."));
  const openSettings = () => actions.openSettings("/settings/");
  const openInstructions = () => actions.openSettings("/settings/personalisation");
  return [
    { name: "new-chat", words: gettext("New chat"), key: "o", ...both, run: actions.startNew },
    { name: "search", words: gettext("Search chats"), key: "k", ...mod, run: actions.search },
    { words: gettext("Temporary chat"), key: "'", ...both, run: actions.toggleTemporary },
    { words: gettext("Show or hide the sidebar"), key: "s", ...both, run: actions.toggleSidebar },
    { words: gettext("Go to the message box"), key: "escape", shift: true, run: actions.focusComposer },
    { words: gettext("Go to the message box"), key: "/", run: actions.focusComposer },
    { name: "stop", words: gettext("Stop the answer"), key: "escape", run: actions.stop },
    { words: gettext("Copy the last answer"), key: "c", ...both, run: copyAnswer },
    { words: gettext("Copy the last code block"), key: ";", ...both, run: copyCode },
    { words: gettext("Choose the model"), key: "m", ...both, run: actions.chooseModel },
    { words: gettext("Answer again"), key: "e", ...both, run: actions.regenerate },
    { words: gettext("Go on with a cut answer"), key: "enter", alt: true, run: actions.goOn },
    { words: gettext("Attach files"), key: "u", ...mod, run: actions.attach },
    { name: "allow", words: gettext("Allow what a tool wants to do"), key: "enter", mod: true, alt: true, run: actions.allow },
    { name: "deny", words: gettext("Don’t allow what a tool wants to do"), key: "backspace", mod: true, alt: true, run: actions.deny },
    { words: gettext("Version before or after of a message"), key: "arrowleft", alt: true, run: actions.olderVersion },
    { words: gettext("Version before or after of a message"), key: "arrowright", alt: true, run: actions.newerVersion },
    { words: gettext("Delete this chat"), key: "backspace", ...both, run: actions.deleteShown },
    // In a text these two select it.
    { words: gettext("Go to the start"), key: "arrowup", ...both, notInText: true, run: actions.toStart },
    { words: gettext("Go to the end"), key: "arrowdown", ...both, notInText: true, run: actions.toEnd },
    { words: gettext("Custom instructions"), key: "i", ...both, run: openInstructions },
    { words: gettext("Settings"), key: ",", ...mod, run: openSettings },
    { words: gettext("Keyboard shortcuts"), key: "/", ...mod, run: actions.showShortcuts },
    { words: gettext("Keyboard shortcuts"), key: "?", run: actions.showShortcuts },
  ];
}
