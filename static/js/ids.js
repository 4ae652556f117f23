// @ts-check

/** A random id. `crypto.randomUUID` is missing where the page came over plain http from a host. */
export function newId() {
  return randomHex(16);
}

/** A W3C `traceparent`: its trace id leads from this page to the server's log. */
export function newTraceparent() {
  return `00-${randomHex(16)}-${randomHex(8)}-01`;
}

/** @param {number} numBytes */
function randomHex(numBytes) {
  const bytes = crypto.getRandomValues(new Uint8Array(numBytes));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
