// @ts-check
/** What is said of documents, uploads and accesses. Pure functions. */

import { gettext, isolated, ngettext } from "./i18n.js";
import { size } from "./import-words.js";
import { shortDate } from "./words.js";

/** @typedef {import("./document-api.js").Document} Document */

const UNFINISHED = ["queued", "parsing", "embedding"];

/** @param {Document} document */
export function isUnfinished({ version }) {
  return version !== null && UNFINISHED.includes(version.state);
}

/**
 * How a document stands. `progress` from 0 to 1; null where nobody knows how much there is, undefined
 * where nothing goes on.
 * @param {Document} document
 * @returns {{state: string, text: string, progress?: number | null}}
 */
export function stateOf({ version, live_version }) {
  switch (version?.state) {
    case "queued":
      return { state: "queued", text: gettext("Waiting to be read"), progress: null };
    case "parsing":
      return { state: "parsing", text: gettext("Being read"), progress: null };
    case "embedding": {
      const { num_embedded: done, num_chunks: total } = version;
      const text = total ? gettext("%(done)s of %(total)s passages", { done, total }) : gettext("Passages are made");
      return { state: "embedding", text, progress: total ? done / total : null };
    }
    case "ready":
      return { state: "ready", text: gettext("Ready") };
    case "failed": {
      const reason = version.reason || gettext("The file could not be read.");
      const text = live_version ? gettext("The new version failed: %(reason)s The one before is still found.", { reason }) : reason;
      return { state: "failed", text };
    }
    default:
      return { state: "queued", text: gettext("Without a file") };
  }
}

/** @param {Document} document */
export function factsOf({ size_bytes, version, created_at, created_by, source_url }) {
  const facts = [size(size_bytes)];
  if (version && version.num_pages > 1) facts.push(ngettext("%(n)s page", "%(n)s pages", version.num_pages));
  if (version?.state === "ready" && version.num_chunks) facts.push(passages(version.num_chunks));
  if (version && version.number > 1) facts.push(gettext("version %(n)s", { n: version.number }));
  facts.push(shortDate(version?.created_at ?? created_at));
  if (source_url) facts.push(hostOf(source_url));
  if (created_by) facts.push(created_by.name);
  return facts.map(isolated).join(" · ");
}

/** @param {number} number */
export function passages(number) {
  return ngettext("%(n)s passage", "%(n)s passages", number);
}

/** @param {number} number */
export function documents(number) {
  return ngettext("%(n)s document", "%(n)s documents", number);
}

/** @param {string} url */
function hostOf(url) {
  try {
    return new URL(url).host;
  } catch {
    return url.slice(0, 60);
  }
}

/** @param {import("./document-api.js").Collection} collection */
export function aboutCollection({ num_documents, num_chunks, is_mine, may_write, owner, updated_at }) {
  const facts = [documents(num_documents)];
  if (num_chunks) facts.push(passages(num_chunks));
  facts.push(shortDate(updated_at));
  if (!is_mine) facts.push(may_write ? gettext("%(name)s’s, you may write", { name: owner.name }) : gettext("%(name)s’s, to read", { name: owner.name }));
  return facts.map(isolated).join(" · ");
}

/** @param {import("./document-api.js").Access} access */
export function whoReads({ user, group }) {
  if (user) return user.name;
  return group ? gettext("Group %(name)s", { name: group.name }) : gettext("Everybody here");
}

/**
 * How an upload stands.
 * @param {{state: string, loaded: number, size: number, problem: string}} upload
 */
export function uploadLine({ state, loaded, size: total, problem }) {
  if (state === "failed") return problem;
  if (state === "waiting") return gettext("Waiting · %(size)s", { size: size(total) });
  if (state === "sent") return gettext("Uploaded");
  if (loaded >= total) return gettext("Being checked");
  return gettext("%(done)s of %(total)s", { done: size(loaded), total: size(total) });
}

/**
 * Where a passage is, in a few words.
 * @param {import("./document-api.js").Hit} hit
 */
export function placeOf({ first_page, last_page, page_label, context }) {
  const pages = last_page > first_page
    ? gettext("Pages %(from)s–%(to)s", { from: first_page, to: last_page })
    : gettext("Page %(n)s", { n: first_page });
  const heading = context.split("\n")[0].trim();
  return [page_label || pages, heading].filter(Boolean).map(isolated).join(" · ");
}

/**
 * Words as somebody types them, divided by commas.
 * @param {string} text
 */
export function tagsOf(text) {
  return [...new Set(text.split(/[,،、]/).map((tag) => tag.trim()).filter(Boolean))];
}

/**
 * A part of a passage that holds the first of the words that were searched for, and where they are in it.
 * @param {string} text
 * @param {string} query
 * @param {number} maxChars
 * @returns {{text: string, isMarked: boolean}[]}
 */
export function excerpt(text, query, maxChars) {
  const line = text.replace(/\s+/g, " ").trim();
  const words = query.toLocaleLowerCase().match(/[\p{L}\p{N}]{3,}|[\p{L}\p{N}]+/gu) ?? [];
  const pattern = words.length ? new RegExp(words.map((word) => RegExp.escape?.(word) ?? word).join("|"), "giu") : null;
  const first = pattern ? line.search(pattern) : -1;
  const start = first > maxChars / 2 ? line.indexOf(" ", Math.max(0, first - maxChars / 3)) + 1 : 0;
  const shown = `${start ? "…" : ""}${line.slice(start, start + maxChars)}${start + maxChars < line.length ? "…" : ""}`;
  if (!pattern) return [{ text: shown, isMarked: false }];
  const found = [];
  let after = 0;
  for (const match of shown.matchAll(pattern)) {
    if (match.index > after) found.push({ text: shown.slice(after, match.index), isMarked: false });
    found.push({ text: match[0], isMarked: true });
    after = match.index + match[0].length;
  }
  if (after < shown.length) found.push({ text: shown.slice(after), isMarked: false });
  return found;
}
