// @ts-check
/** What another app has shared to this one: the manifest's share_target puts it into the address. */

const FIELDS = ["title", "text", "url"];

/**
 * One text of an address' query, each thing once: some apps give the link twice. Pure.
 * @param {string} query
 * @returns {string} empty where nothing is shared
 */
export function sharedText(query) {
  const given = new URLSearchParams(query);
  /** @type {string[]} */
  const parts = [];
  for (const name of FIELDS) {
    const value = (given.get(name) ?? "").trim();
    if (value && !parts.some((part) => part.includes(value))) parts.push(value);
  }
  return parts.join("\n");
}
