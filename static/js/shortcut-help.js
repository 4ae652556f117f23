// @ts-check
/** What the help dialog says, filled when it is first opened. */

import { element, find } from "./dom.js";
import { gettext } from "./i18n.js";
import { preference } from "./preferences.js";
import { keyWords } from "./shortcuts.js";

/**
 * @param {HTMLDialogElement} dialog
 * @param {import("./shortcuts.js").Shortcut[]} shortcuts
 */
export function fillHelp(dialog, shortcuts) {
  const groups = Map.groupBy(shortcuts, ({ words }) => words);
  const rows = [...groups].map(([words, ways]) => row(words, ...ways.map(keyWords)));
  find(dialog, "[data-anywhere]").replaceChildren(...rows);
  find(dialog, "[data-writing]").replaceChildren(...whileWriting());
}

/** What the keys of the message box do; they are nobody's to choose. */
function whileWriting() {
  const enter = keyWords({ key: "enter" });
  const needsMod = preference("send-key") === "mod-enter";
  return [
    row(gettext("Send the message"), needsMod ? keyWords({ key: "enter", mod: true }) : enter),
    row(gettext("A new line"), needsMod ? enter : keyWords({ key: "enter", shift: true })),
    row(gettext("Edit the last message, in an empty box"), keyWords({ key: "arrowup" })),
    row(gettext("Put in a saved prompt"), "/"),
    row(gettext("Pick documents that the answer is looked up in"), "#"),
    row(gettext("Choose who answers"), "@"),
    row(gettext("Paste a long text as it is"), keyWords({ key: "v", mod: true, shift: true })),
  ];
}

/** @param {string} words @param {string[]} ways to do it */
function row(words, ...ways) {
  const keys = ways.map((keys) => element("kbd", {}, [keys]));
  return element("div", {}, [element("dt", {}, [words]), element("dd", {}, keys)]);
}
