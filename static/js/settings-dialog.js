// @ts-check
/**
 * The pages of the settings in a dialog over the chat. They are what stands at their own addresses: fetched,
 * shown without what is around them, and their forms sent from here. What ends elsewhere opens there.
 */

import { confirmed } from "./dialog.js";
import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";
import { settingsAt } from "./navigation.js";
import { opensOverTheChat, wantedAddress } from "./settings-door.js";
import { showSettings } from "./settings.js";
import { ToastRegion } from "./toast.js";

/**
 * @typedef {object} Page the chat's
 * @property {() => boolean} mayReload whether nothing of it would be lost
 * @property {() => Promise<void>} changed something was saved that the chat may show
 */

export class SettingsDialog {
  #asked = 0;
  /** Of the page that is shown, without its fragment. */
  #address = "";
  #isChanged = false;
  /** Closed from here; history is on its way back. */
  #isLeaving = false;
  /** Its reader leaves what is half written; history is on its way. */
  #mayFollow = false;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.body = element("div", { class: "settings-dialog__body" });
    this.toasts = /** @type {ToastRegion} */ (element("toast-region", { role: "status", "aria-live": "polite" }));
    const words = gettext("Close the settings");
    const close = element("button", { type: "button", class: "icon-button settings-dialog__close", "aria-label": words, title: words }, [icon("x")]);
    const label = { class: "settings-dialog", "aria-label": gettext("Settings") };
    this.dialog = /** @type {HTMLDialogElement} */ (element("dialog", label, [close, this.body, this.toasts]));
    document.body.append(this.dialog);
    close.addEventListener("click", () => this.#leave());
    this.dialog.addEventListener("cancel", (event) => {
      if (event.target !== this.dialog) return;
      event.preventDefault();
      this.#leave();
    });
    /** @type {EventTarget | null} */
    let pressed = null; // a text that is selected as far as the backdrop closes nothing
    this.dialog.addEventListener("pointerdown", ({ target }) => (pressed = target));
    this.dialog.addEventListener("click", (event) => {
      if (event.target !== this.dialog) this.#clicked(event);
      else if (pressed === this.dialog) this.#leave();
    });
    this.dialog.addEventListener("close", (event) => event.target === this.dialog && this.#closed());
    this.dialog.addEventListener("submit", (event) => this.#submitted(event));
  }

  /** Show a page of the settings, and its address. @param {string} address */
  async go(address) {
    const isHere = address.split("#")[0] === this.#address;
    if (this.dialog.open && !isHere && !(await this.#mayLeave())) return;
    const depth = (history.state?.settings ?? 0) + 1; // pages of them to go back through
    if (settingsAt() !== address) history.pushState({ settings: depth }, "", `#${address}`);
    this.#showAddress();
  }

  /** Back and forward have led to another address; what is half written must not be lost by that. */
  async follow() {
    const isElsewhere = settingsAt()?.split("#")[0] !== this.#address;
    const mayGo = !this.dialog.open || this.#mayFollow || !isElsewhere || !this.#isHalfDone;
    this.#mayFollow = false;
    if (mayGo) return this.#showAddress();
    history.pushState({ settings: (history.state?.settings ?? 0) + 1 }, "", `#${this.#address}`);
    if (document.querySelector("#confirm[open]") || !(await this.#mayLeave())) return;
    this.#mayFollow = true;
    history.back();
  }

  /** Show what the page's address says. */
  #showAddress() {
    const address = settingsAt();
    const isLeaving = this.#isLeaving;
    this.#isLeaving = false;
    if (address === null) return this.dialog.close();
    if (isLeaving) return forgetAddress(); // where the page began with them
    if (!this.dialog.open) this.#open();
    const [path, fragment = ""] = address.split("#");
    if (path === this.#address) return this.#reveal(fragment);
    return this.#ask(path, {}, fragment);
  }

  #open() {
    const menu = document.activeElement?.closest(":popover-open");
    /** @type {HTMLElement | null | undefined} */ (menu)?.hidePopover(); // the focus goes back to its button, and later from here
    this.dialog.showModal();
  }

  // --- leaving -----------------------------------------------------------------------------

  async #leave() {
    if (await this.#mayLeave()) this.dialog.close();
  }

  get #isHalfDone() {
    const forms = /** @type {HTMLFormElement[]} */ ([...this.body.querySelectorAll("form[method=post]")]);
    return this.body.querySelector("form [aria-invalid=true]") !== null || forms.some(isEdited);
  }

  #mayLeave() {
    if (!this.#isHalfDone) return true;
    return confirmed({
      title: gettext("Leave without saving?"),
      text: gettext("What you have changed on this page is not saved yet."),
      action: gettext("Leave"),
    });
  }

  /** Back has closed it, or it takes itself out of the address. */
  #closed() {
    this.#asked++;
    this.#address = "";
    this.body.replaceChildren();
    if (this.#isChanged) this.#tellChanged();
    this.#isChanged = false;
    if (settingsAt() === null) return;
    const depth = history.state?.settings ?? 0;
    this.#isLeaving = depth > 0;
    if (depth) history.go(-depth);
    else forgetAddress();
  }

  /** Where the server cannot be asked the chat shows what it has. */
  #tellChanged() {
    this.page.changed().catch(() => {});
  }

  // --- within ------------------------------------------------------------------------------

  /** @param {MouseEvent} event */
  #clicked(event) {
    const address = wantedAddress(event);
    if (!address) return;
    event.preventDefault();
    this.go(address);
  }

  /** @param {SubmitEvent} event */
  #submitted(event) {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (event.defaultPrevented || form.method === "dialog") return;
    const submitter = /** @type {HTMLButtonElement | null} */ (event.submitter);
    const action = submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? this.#address;
    if (!opensOverTheChat(action)) return; // to sign out, say
    event.preventDefault();
    if (this.dialog.ariaBusy === "true") return;
    const fields = new URLSearchParams(/** @type {any} */ (new FormData(form, submitter)));
    const isSent = form.method === "post";
    const isLanguage = form.matches("[data-language]");
    if (!isSent) return this.#ask(`${action.split("?")[0]}?${fields}`);
    return this.#ask(action, { method: "POST", body: fields }, isLanguage ? "language" : "");
  }

  /**
   * Show what the server answers.
   * @param {string} address
   * @param {RequestInit} [request]
   * @param {string} [fragment]
   */
  async #ask(address, request = {}, fragment = "") {
    const asked = ++this.#asked;
    this.dialog.ariaBusy = "true";
    const isSent = request.method === "POST";
    if (isSent) this.#isChanged = true; // also where its answer is lost, or not waited for
    try {
      const { page, at, status } = await pageAt(address, request);
      if (isSent && !this.dialog.open) this.#tellChanged();
      if (asked !== this.#asked) return;
      const content = page.querySelector(".settings");
      if (!opensOverTheChat(at.pathname)) {
        forgetAddress(); // back leads to the chat, not here again
        return location.assign(at);
      }
      if (!content) throw new Error(gettext("The server answered %(status)s.", { status }));
      await loadStyles(page);
      if (asked !== this.#asked) return;
      if (isSent) this.#sent(at, page);
      this.#show(at.pathname + at.search, page, content, fragment);
    } catch (error) {
      if (asked === this.#asked) this.#fail(/** @type {Error} */ (error).message, isSent ? null : () => this.#showAddress());
    } finally {
      if (asked === this.#asked) this.dialog.ariaBusy = null;
    }
  }

  /**
   * A form was sent: where it has led to is the address now, and the language may be another one.
   * @param {URL} at
   * @param {Document} page
   */
  #sent(at, page) {
    const isOther = page.documentElement.lang !== document.documentElement.lang;
    history.replaceState(history.state, "", `#${at.pathname}${at.search}${isOther ? "#language" : ""}`);
    if (!isOther) return;
    if (this.page.mayReload()) return location.reload(); // it comes back here
    this.toasts.show(gettext("The chat speaks it once it is loaded again."), { action: gettext("Reload"), run: () => location.reload(), shownMs: 60_000 });
  }

  /**
   * @param {string} address
   * @param {Document} page
   * @param {Element} content
   * @param {string} fragment
   */
  #show(address, page, content, fragment) {
    this.#address = address;
    const { lang, dir } = page.documentElement;
    const shown = element("div", { class: "settings", lang, dir });
    const main = element("div", { class: "settings__page" });
    main.append(...(content.querySelector("main")?.childNodes ?? []));
    content.querySelector(".settings__back")?.remove();
    shown.append(...content.querySelectorAll(".settings__nav"), main);
    this.body.replaceChildren(shown);
    this.body.scrollTop = 0;
    showSettings(this.dialog);
    this.#reveal(fragment);
  }

  /**
   * Go to a part of the page; else to what is wrong with it, or to its beginning.
   * @param {string} fragment
   */
  #reveal(fragment) {
    this.body.querySelector("[data-found]")?.removeAttribute("data-found");
    const part = fragment && this.body.querySelector(`[id="${CSS.escape(fragment)}"]`);
    const target = /** @type {HTMLElement | null} */ (part || (this.body.querySelector("[aria-invalid=true]") ?? this.body.querySelector("h1")));
    if (!target) return;
    if (!target.matches("a, button, input, select, textarea")) target.tabIndex = -1;
    target.focus({ preventScroll: true });
    if (!part && target.matches("h1")) return void (this.body.scrollTop = 0);
    target.toggleAttribute("data-found", Boolean(part));
    target.scrollIntoView({ block: "start" });
  }

  /**
   * @param {string} words
   * @param {(() => void) | null} again null: what is written is still there to be sent again
   */
  #fail(words, again) {
    if (this.body.childElementCount || !again) return this.toasts.show(words);
    const button = element("button", { type: "button", class: "button" }, [gettext("Try again")]);
    button.addEventListener("click", again);
    this.body.replaceChildren(element("p", { class: "settings-dialog__state", role: "alert" }, [words, " ", button]));
    button.focus();
  }
}

/** They lie over the chat no more. */
function forgetAddress() {
  history.replaceState(null, "", location.pathname + location.search);
}

/**
 * @param {string} address
 * @param {RequestInit} request
 */
async function pageAt(address, request) {
  const response = await fetch(address, { ...request, headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => {
    throw new Error(gettext("The server cannot be reached."));
  });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return { page, at: new URL(response.url), status: response.status };
}

/** Addresses and names of its style sheets, a joined one's parts among them. @param {Document} page */
function sheetsOf(page) {
  const links = /** @type {NodeListOf<HTMLLinkElement>} */ (page.querySelectorAll("link[rel=stylesheet]"));
  return [...links].flatMap((link) => {
    const href = link.getAttribute("href") ?? "";
    const names = link.dataset.sheets?.split(" ") ?? [/[^/.]*(?=[^/]*$)/.exec(href)?.[0] ?? href];
    return names.map((name) => ({ href, name }));
  });
}

/** What the page looks like, where the chat does not have it. @param {Document} page */
function loadStyles(page) {
  const here = new Set(sheetsOf(document).map(({ name }) => name));
  const missing = new Set(sheetsOf(page).filter(({ name }) => !here.has(name)).map(({ href }) => href));
  return Promise.all([...missing].map((href) => new Promise((resolve) => {
    const link = element("link", { rel: "stylesheet", href });
    link.addEventListener("load", resolve);
    link.addEventListener("error", resolve); // readable without
    document.head.append(link);
  })));
}

/** @param {HTMLFormElement} form */
function isEdited(form) {
  return [...form.elements].some((field) => {
    if (field instanceof HTMLSelectElement) return [...field.options].some(({ selected, defaultSelected }) => selected !== defaultSelected) && [...field.options].some(({ defaultSelected }) => defaultSelected);
    if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
    if (!(field instanceof HTMLInputElement)) return false;
    return field.checked !== field.defaultChecked || (!["checkbox", "radio", "hidden"].includes(field.type) && field.value !== field.defaultValue);
  });
}
