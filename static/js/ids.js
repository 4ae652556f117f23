// @ts-check

/** A random id. `crypto.randomUUID` is missing where the page came over plain http from a host. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
