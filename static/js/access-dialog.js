// @ts-check
/** Who may read a collection: people by their address, one's groups, and, for administrators, everybody. */

import { whoReads } from "./document-words.js";
import { element, find, icon, setText } from "./dom.js";
import { FormDialog } from "./form-dialog.js";
import { gettext } from "./i18n.js";

/** @typedef {import("./document-api.js").Access} Access */

export class AccessDialog {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {import("./document-api.js").DocumentApi} api
   * @param {string} collection
   */
  constructor(dialog, api, collection) {
    this.form = new FormDialog(dialog);
    this.api = api;
    this.collection = collection;
    this.list = find(dialog, "[data-accesses]");
    this.news = find(dialog, "[data-news]");
    this.emailField = find(dialog, "[data-email-field]");
    this.whom = find(dialog, "[name=whom]");
    this.whom.addEventListener("change", () => this.#fitFields());
  }

  async open() {
    this.list.replaceChildren();
    this.whom.replaceChildren(element("option", { value: "email" }, [gettext("A person")]));
    this.#fitFields();
    this.form.open({ email: "", may_write: "" }, (fields) => this.#grant(fields));
    await this.#load();
  }

  async #load() {
    try {
      const { accesses, groups, may_share_with_everybody } = await this.api.accesses(this.collection);
      this.whom.append(...groups.map(({ id, name }) => element("option", { value: `group:${id}` }, [gettext("Group %(name)s", { name })])));
      if (may_share_with_everybody) this.whom.append(element("option", { value: "everybody" }, [gettext("Everybody here")]));
      this.#render(accesses);
    } catch (error) {
      this.form.say(/** @type {Error} */ (error).message);
    }
  }

  #fitFields() {
    const isPerson = this.whom.value === "email";
    this.emailField.hidden = !isPerson;
    find(this.emailField, "input").required = isPerson;
  }

  /** @param {any} fields @returns {Promise<false>} the dialog stays, for the next one */
  async #grant({ whom, email, may_write }) {
    const [kind, group] = whom.value.split(":");
    /** @type {Record<string, object>} */
    const wishes = { email: { email: email.value.trim() }, group: { group: Number(group) }, everybody: { everybody: true } };
    await this.api.grant(this.collection, { ...wishes[kind], may_write: may_write.value === "yes" });
    email.value = "";
    setText(this.news, gettext("Shared."));
    this.#render((await this.api.accesses(this.collection)).accesses);
    return false;
  }

  /** @param {Access[]} accesses */
  #render(accesses) {
    const rows = accesses.map((access) => this.#row(access));
    this.list.replaceChildren(...(rows.length ? rows : [element("li", { class: "share-list__about" }, [gettext("Only you.")])]));
  }

  /** @param {Access} access */
  #row(access) {
    const name = whoReads(access);
    const about = [access.user?.email, access.may_write ? gettext("reads, adds and changes") : gettext("reads")].filter(Boolean).join(" · ");
    const revoke = element("button", { type: "button", class: "small-button small-button--danger", "aria-label": gettext("Share no more with %(name)s", { name }) }, [icon("trash"), gettext("Remove")]);
    revoke.addEventListener("click", () => this.#revoke(access));
    return element("li", {}, [
      element("span", { class: "share-list__main" }, [element("bdi", {}, [name]), element("span", { class: "share-list__about" }, [about])]),
      element("span", { class: "share-list__actions" }, [revoke]),
    ]);
  }

  /** @param {Access} access */
  async #revoke({ id }) {
    try {
      await this.api.revoke(this.collection, id);
      this.#render((await this.api.accesses(this.collection)).accesses);
      setText(this.news, gettext("It is not shared with them any more."));
      /** @type {HTMLElement} */ (this.list.querySelector("button") ?? this.whom).focus();
    } catch (error) {
      this.form.say(/** @type {Error} */ (error).message);
    }
  }
}
