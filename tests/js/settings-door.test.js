import assert from "node:assert/strict";
import { test } from "node:test";

import { opensOverTheChat, wantedAddress } from "../../static/js/settings-door.js";

/** A click on a link, as far as it matters. */
function click(href, { attributes = {}, ...more } = {}) {
  const link = {
    pathname: href.split(/[?#]/)[0],
    target: attributes.target ?? "",
    hasAttribute: (name) => name in attributes,
    getAttribute: () => href,
  };
  const target = { closest: () => (href.startsWith("/settings/") ? link : null) };
  return { target, button: 0, defaultPrevented: false, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...more };
}

test("pages of the settings come over the chat", () => {
  for (const path of ["/settings/", "/settings/keys/new", "/settings/usage", "/settings/language"]) assert.ok(opensOverTheChat(path), path);
});

test("what asks for the password again, sends a file or ends the account is a page of its own", () => {
  for (const path of ["/settings/security/", "/settings/security/webauthn/add/", "/settings/export", "/settings/delete-account", "/documents/", "/c/1"]) {
    assert.ok(!opensOverTheChat(path), path);
  }
});

test("a plain click is meant, with its fragment", () => {
  assert.equal(wantedAddress(click("/settings/#keyboard")), "/settings/#keyboard");
  assert.equal(wantedAddress(click("/settings/moderation#decision-1")), "/settings/moderation#decision-1");
});

test("a click that asks for another tab, a file or another place is left to the browser", () => {
  for (const keys of [{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, { altKey: true }, { button: 1 }, { defaultPrevented: true }]) {
    assert.equal(wantedAddress(click("/settings/", keys)), null);
  }
  assert.equal(wantedAddress(click("/settings/", { attributes: { target: "_blank" } })), null);
  assert.equal(wantedAddress(click("/settings/x", { attributes: { download: "" } })), null);
  assert.equal(wantedAddress(click("/settings/security/")), null);
  assert.equal(wantedAddress(click("/documents/")), null);
});
