// @ts-check
/** What the keyboard can do on the chat page (the help dialog shows the same list). */

/**
 * @param {Record<"startNew" | "toggleSidebar" | "focusComposer" | "stop" | "chooseModel" |
 *   "deleteShown" | "toStart" | "toEnd" | "showShortcuts", () => void>} actions
 * @param {(selector: string, words: string) => void} copyLast press the last copy button of a kind
 * @returns {import("./shortcuts.js").Shortcut[]}
 */
export function chatShortcuts(actions, copyLast) {
  const mod = { mod: true };
  const both = { mod: true, shift: true };
  const copyAnswer = () => copyLast(".message--assistant [data-copy]", "The answer is copied.");
  const copyCode = () => copyLast("[data-copy-code]", "The code is copied.");
  const openSettings = () => location.assign("/settings/");
  return [
    { name: "new-chat", words: "New chat", key: "o", ...both, run: actions.startNew },
    { words: "Show or hide the sidebar", key: "s", ...both, run: actions.toggleSidebar },
    { words: "Go to the message box", key: "escape", shift: true, run: actions.focusComposer },
    { words: "Go to the message box", key: "/", run: actions.focusComposer },
    { words: "Stop the answer", key: "escape", run: actions.stop },
    { words: "Copy the last answer", key: "c", ...both, run: copyAnswer },
    { words: "Copy the last code block", key: ";", ...both, run: copyCode },
    { words: "Choose the model", key: "m", ...both, run: actions.chooseModel },
    { words: "Delete this chat", key: "backspace", ...both, run: actions.deleteShown },
    // In a text these two select it.
    { words: "Go to the start", key: "arrowup", ...both, notInText: true, run: actions.toStart },
    { words: "Go to the end", key: "arrowdown", ...both, notInText: true, run: actions.toEnd },
    { words: "Settings", key: ",", ...mod, run: openSettings },
    { words: "Keyboard shortcuts", key: "/", ...mod, run: actions.showShortcuts },
    { words: "Keyboard shortcuts", key: "?", run: actions.showShortcuts },
  ];
}
