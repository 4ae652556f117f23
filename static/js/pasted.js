// @ts-check
/** Long texts that are pasted become files of the message. */

import { insertText } from "./caret.js";
import { gettext } from "./i18n.js";

const MAX_NAME_CHARS = 48;

/**
 * Where it cannot become one, it is text.
 * @param {{input: HTMLTextAreaElement, picked: import("./picked-sources.js").PickedSources, text: string,
 *   attach: import("./source-door.js").Attach, tell: (words: string, more: {action: string, run: () => void}) => void}} pasted
 */
export async function attachText({ input, picked, text, attach, tell }) {
  const name = pastedName(text, gettext("Pasted text"));
  const before = new Set(picked.attachments);
  if (!(await attach([new File([text], name, { type: "text/plain" })], text))) return insertText(input, text);
  const made = picked.attachments.find((one) => one.text === text && !before.has(one));
  const instead = () => {
    if (made) picked.remove(made);
    insertText(input, text);
  };
  tell(gettext("The long text is a file of this message."), { action: gettext("Put it into the message"), run: instead });
}

/**
 * A file name by which people know the text: its first line. Pure.
 * @param {string} text
 * @param {string} usual where the first line says nothing
 */
export function pastedName(text, usual) {
  const line = text.split(/\r?\n/).map((one) => one.trim()).find(Boolean) ?? "";
  const name = line.replace(/[\p{C}\\/:*?"<>|#]+/gu, " ").replace(/\s+/g, " ").trim();
  const short = [...name].slice(0, MAX_NAME_CHARS).join("").replace(/[ .]+$/, "");
  return `${short || usual}.txt`;
}
