// @ts-check
/** Addresses of documents. */

/**
 * Where a document is shown, at a passage of it if one is named.
 * @param {{document: string, version?: string | null, start?: number, end?: number}} place `start` and
 *   `end` count the characters (code points) of the version's text
 */
export function viewerUrl({ document, version, start, end }) {
  const query = new URLSearchParams();
  if (version) query.set("version", version);
  if (start !== undefined && end !== undefined && start < end) {
    query.set("start", String(start));
    query.set("end", String(end));
  }
  return `/documents/${document}${query.size ? `?${query}` : ""}`;
}

/** @param {string} id */
export function collectionUrl(id) {
  return `/documents/collections/${id}`;
}
