// @ts-check
/**
 * The sum that the form of sign-up asks for (webapp/signup_work.py): a number with which the challenge
 * has a hash that begins with so many zero bits. It begins with the page, in portions, and the form
 * waits for it.
 */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { sha256 } from "./sha256.js";

const PORTION = 500;
const encoder = new TextEncoder();

/** @param {string} challenge @param {string} nonce */
export function numZeroBits(challenge, nonce) {
  let zeros = 0;
  for (const word of sha256(encoder.encode(`${challenge}:${nonce}`))) {
    zeros += Math.clz32(word);
    if (word) break;
  }
  return zeros;
}

/**
 * @param {string} challenge
 * @param {number} bits
 */
export async function worked(challenge, bits) {
  for (let number = 0; ; number += 1) {
    if (numZeroBits(challenge, String(number)) >= bits) return String(number);
    if (number % PORTION === PORTION - 1) await new Promise((next) => setTimeout(next));
  }
}

/** @param {HTMLFormElement} form */
async function prepare(form) {
  const nonce = /** @type {HTMLInputElement} */ (find(form, "[name=nonce]"));
  const challenge = /** @type {HTMLInputElement} */ (find(form, "[name=challenge]")).value;
  let isWanted = false;
  form.addEventListener("submit", (event) => {
    if (nonce.value) return;
    event.preventDefault();
    isWanted = true;
    setText(find(form, "[data-work-status]"), gettext("One moment …"));
  });
  nonce.value = await worked(challenge, Number(form.dataset.workBits));
  if (isWanted) form.requestSubmit();
}

if (globalThis.document) {
  for (const form of document.querySelectorAll("form[data-work-bits]")) prepare(/** @type {HTMLFormElement} */ (form));
}
