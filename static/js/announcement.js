// @ts-check
/** An announcement that is put away stays so in this browser, until it changes: the server reads the cookie. */

import { find } from "./dom.js";

const KEPT_S = 365 * 24 * 3600;

const box = find(document, ".announcement");
find(box, "button").addEventListener("click", () => {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `announcement=${box.dataset.key}; Path=/; Max-Age=${KEPT_S}; SameSite=Lax${secure}`;
  box.remove();
  find(document, "#composer-input").focus();
});
