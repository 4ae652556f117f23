// @ts-check
/** What the share dialog and lists of links say. Pure functions. */

import { LOCALE, gettext, listed } from "./i18n.js";
import { count } from "./words.js";

const MAX_SNIPPET_CHARS = 48;

/**
 * @typedef {{id: string, url: string | null, conversation: string, message: string, title: string,
 *   kind: "snapshot" | "live", with_steps: boolean, shown_name: string, created_at: string,
 *   expires_at: string | null}} Share
 * @typedef {{kind: string, withSteps: boolean, withName: boolean, numMessages: number,
 *   first: string, last: string, hasSteps: boolean, hasPictures?: boolean, isPublic: boolean}} ShareChoice
 */

/**
 * Exactly what a link shows, and what not: one sentence each.
 * @param {ShareChoice} choice
 * @returns {string[]}
 */
export function shareFacts({ kind, withSteps, withName, numMessages, first, last, hasSteps, hasPictures, isPublic }) {
  const parts = { messages: count(numMessages, "message"), first: snippet(first), last: snippet(last) };
  const facts = [gettext("Shown: the title and %(messages)s, from “%(first)s” to “%(last)s”.", parts)];
  if (hasPictures) facts.push(gettext("Shown: the pictures that answers have drawn, with their prompts."));
  if (withSteps && hasSteps) facts.push(gettext("Shown: what tools were given and returned. Look through it."));
  facts.push(
    kind === "live"
      ? gettext("Shown as well: every message that you add below that answer, until you revoke the link.")
      : gettext("Not shown: anything that you write later."),
  );
  const hidden = [gettext("other branches"), gettext("the system prompt")];
  if (!withSteps) hidden.push(gettext("thinking and tool results"));
  if (!withName) hidden.push(gettext("your name"));
  facts.push(gettext("Not shown: %(things)s.", { things: listed(hidden) }));
  facts.push(
    isPublic ? gettext("Anyone who has the link can open it.") : gettext("Anyone with an account here who has the link can open it."),
  );
  return facts;
}

/** @param {string} text */
export function snippet(text) {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = [...line];
  return characters.length > MAX_SNIPPET_CHARS
    ? `${characters.slice(0, MAX_SNIPPET_CHARS - 1).join("")}…`
    : line || "…";
}

/** @param {Share} share */
export function aboutShare({ kind, with_steps, shown_name, created_at, expires_at }) {
  const facts = [kind === "live" ? gettext("Live of %(day)s", { day: day(created_at) }) : gettext("Snapshot of %(day)s", { day: day(created_at) })];
  if (with_steps) facts.push(gettext("with tool results"));
  if (shown_name) facts.push(gettext("with your name"));
  facts.push(expires_at ? gettext("ends %(day)s", { day: day(expires_at) }) : gettext("until revoked"));
  return facts.join(" · ");
}

/** @param {string} iso */
function day(iso) {
  return new Date(iso).toLocaleDateString(LOCALE, { dateStyle: "medium" });
}
