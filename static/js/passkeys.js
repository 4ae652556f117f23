// @ts-check
/**
 * Passkeys: a form whose button first asks the browser for one (WebAuthn), and then sends what it said.
 * `data-passkey` is `create`, `get`, or `login`, which asks its own address for what to ask for.
 */

import { find, setText } from "./dom.js";
import { gettext } from "./i18n.js";

const isAddress = /^[\d.]+$|:/.test(location.hostname.replace(/^\[|\]$/g, ""));

/** Why this page can have none, or "". */
function obstacle() {
  if (isAddress) return gettext("Passkeys need a name in the address bar, not a number: open this site as localhost, or by its name.");
  if (!window.isSecureContext) return gettext("Passkeys need HTTPS.");
  const knows = globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON;
  return knows ? "" : gettext("This browser knows no passkeys.");
}

/** @param {HTMLFormElement} form */
async function options(form) {
  if (form.dataset.passkey !== "login") return JSON.parse(find(document, "#passkey-options").textContent);
  const response = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(gettext("The server answered %(status)s.", { status: response.status }));
  return (await response.json()).request_options;
}

/** @param {HTMLFormElement} form */
async function credential(form) {
  const { publicKey } = await options(form);
  if (form.dataset.passkey === "create") {
    publicKey.authenticatorSelection = { ...publicKey.authenticatorSelection, residentKey: "required", requireResidentKey: true, userVerification: "required" };
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
}

/** @param {HTMLFormElement} form */
function prepare(form) {
  const button = find(form, "button");
  const status = find(form, "[data-passkey-status]");
  const why = obstacle();
  setText(status, form.dataset.passkey === "login" ? "" : why);
  button.disabled = Boolean(why);
  form.hidden = form.dataset.passkey === "login" && Boolean(why);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    setText(status, gettext("Waiting for your passkey"));
    try {
      const made = /** @type {PublicKeyCredential} */ (await credential(form));
      find(form, "[name=credential]").value = JSON.stringify(made.toJSON());
      form.submit(); // not requestSubmit: this listener has done its part
    } catch (error) {
      setText(status, wordsOf(/** @type {Error} */ (error)));
      button.disabled = false;
    }
  });
}

/** @param {Error} error */
function wordsOf(error) {
  if (error.name === "NotAllowedError") return gettext("That was cancelled, or took too long. Nothing has changed.");
  if (error.name === "InvalidStateError") return gettext("This device has a passkey of yours already.");
  return error.message;
}

for (const form of document.querySelectorAll("form[data-passkey]")) prepare(/** @type {HTMLFormElement} */ (form));
