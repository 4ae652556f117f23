// @ts-check
/** What an import's report says. Pure functions. */

import { LOCALE, gettext } from "./i18n.js";
import { count, thousands } from "./words.js";

const tenths = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const SOURCES = {
  vitrine: "Vitrine", chatgpt: "ChatGPT", openwebui: "Open WebUI", librechat: "LibreChat",
};

/**
 * @typedef {{source: string, num_chats: number, num_messages: number, num_new: number,
 *   num_known: number, num_skipped: number, skipped: {title: string, reason: string}[],
 *   notes: Record<string, number>}} Report
 * @typedef {{id: string, file_name: string, size_bytes: number, status: string, error: string,
 *   report: Partial<Report>}} ChatImport
 */

/** @param {ChatImport} chatImport */
export function statusLine({ status, error, report }) {
  const { num_new = 0, num_chats = 0, num_skipped = 0 } = report;
  switch (status) {
    case "checking":
      return num_chats ? gettext("Looking through the file: %(chats)s so far", { chats: chats(num_chats + num_skipped) }) : gettext("Looking through the file");
    case "checked":
      return num_new ? gettext("%(chats)s can be imported.", { chats: chats(num_new) }) : gettext("There is nothing to import.");
    case "importing":
      return gettext("Importing: %(chats)s so far. You may leave this page.", { chats: chats(num_chats) });
    case "done":
      return num_new ? gettext("%(chats)s imported.", { chats: chats(num_new) }) : gettext("Nothing new was imported.");
    default:
      return error || gettext("The import failed.");
  }
}

/** @param {Partial<Report>} report */
export function reportFacts({ source = "", num_messages = 0, num_known = 0, num_skipped = 0, notes = {} }) {
  const facts = [];
  if (source) facts.push(gettext("From %(source)s, with %(messages)s", { source: /** @type {any} */ (SOURCES)[source] ?? source, messages: count(num_messages, "message") }));
  if (num_known) facts.push(gettext("%(chats)s left out: here already", { chats: chats(num_known) }));
  if (num_skipped) facts.push(gettext("%(entries)s left out: cannot be imported", { entries: count(num_skipped, "entry") }));
  for (const [what, number] of Object.entries(notes)) facts.push(gettext("Not imported: %(what)s, %(times)s", { what, times: count(number, "time") }));
  return facts;
}

/** @param {number} number */
export function chats(number) {
  return count(number, "chat");
}

/** @param {number} bytes */
export function size(bytes) {
  const units = [gettext("bytes"), "KiB", "MiB", "GiB"];
  const power = Math.min(3, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${value < 10 && power ? tenths.format(value) : thousands(value)} ${units[power]}`;
}
