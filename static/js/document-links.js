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

const PICTURE = /\.(png|jpe?g|gif|webp|bmp|tiff?)$/i;

/** Whether a document is a picture, by its name: all that a message says of it. @param {string} name */
export function isPicture(name) {
  return PICTURE.test(name);
}

/**
 * A picture as the server draws it anew, for whoever may read it.
 * @param {string} document
 * @param {200 | 800 | 1600} width in pixels
 */
export function pictureUrl(document, width) {
  return `/api/documents/${document}/pages/1?width=${width}`;
}

/** The file as it came. @param {string} document */
export function contentUrl(document) {
  return `/api/documents/${document}/content`;
}

/** @param {string} id */
export function collectionUrl(id) {
  return `/documents/collections/${id}`;
}
