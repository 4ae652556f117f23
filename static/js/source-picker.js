// @ts-check
/**
 * Picks what a message is answered from: a list behind `#`, and files that are attached. What is picked
 * stands as chips above the box.
 */

import { AttachmentPictures, smallPicture } from "./attachment-pictures.js";
import { Attachments } from "./attachments.js";
import { insertText } from "./caret.js";
import { CaretMenu, replaceCall } from "./caret-menu.js";
import { isPicture, pictureUrl } from "./document-links.js";
import { element, find, icon, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";
import { size } from "./import-words.js";
import { MAX_PICKED } from "./picked-sources.js";
import { hashAt, sourcesFor } from "./source-text.js";
import { percent } from "./words.js";

/**
 * @typedef {import("./source-text.js").Source} Source
 * @typedef {import("./picked-sources.js").Attachment} Attachment
 * @typedef {import("./sources.js").Named} Named
 */

export class SourcePicker {
  /** @type {Map<string, Source>} what the server has told of */
  #known = new Map();
  /** @type {Set<string>} what it was asked for */
  #asked = new Set();
  #hasCollections = false;
  /** @type {WeakMap<object, HTMLElement>} */
  #chips = new WeakMap();

  /**
   * @param {object} page
   * @param {import("./composer.js").ChatComposer} page.composer
   * @param {import("./api.js").Api} page.api
   * @param {(words: string) => void} page.tell
   * @param {number} page.maxFileBytes
   */
  constructor({ composer, api, tell, maxFileBytes }) {
    this.input = composer.input;
    this.picked = composer.picked;
    this.api = api;
    this.tell = tell;
    this.list = find(composer, ".picked");
    this.attachments = new Attachments(api, this.picked, maxFileBytes);
    this.pictures = new AttachmentPictures(this.picked);
    this.menu = new CaretMenu(this.input, {
      id: "source-menu",
      label: gettext("Collections and documents"),
      callAt: (text, caret) => hashAt(text, caret),
      find: (query) => this.#find(query),
      row,
      nothing: (query) => (query ? null : emptyRow()),
      take: (source, call) => this.#take(source, call),
    });
    this.picked.on("changed", () => this.#render());
    document.addEventListener("visibilitychange", () => document.hidden || this.#forget());
    this.#render();
  }

  /**
   * @param {File[]} files
   * @param {string} [text] that was pasted, and of which the file is made
   * @returns {boolean} false where one of them was not taken
   */
  attach(files, text) {
    if (this.picked.takesNoFiles) return false;
    for (const file of files) {
      const attachment = this.picked.attach(file.name, { file, text });
      if (!attachment) {
        this.#tooMany();
        return false;
      }
      this.attachments.send(attachment);
      this.pictures.show(this.#chips.get(attachment), attachment, file);
    }
    this.input.focus();
    return true;
  }

  /** At once what is known already; the server may know more. @param {string} query */
  #find(query) {
    const { collections, documents } = this.picked;
    const here = () => sourcesFor([...this.#known.values()], query, new Set([...collections, ...documents].map(({ id }) => id)));
    if (this.#asked.has(query)) return here();
    this.#asked.add(query);
    const isFirst = !this.#hasCollections;
    const reading = this.#read(query);
    if (isFirst) return reading.then(here);
    reading.then(() => this.menu.changed());
    return here();
  }

  /** Another tab may have changed them. */
  #forget() {
    this.#asked.clear();
    this.#hasCollections = false;
  }

  /** @param {string} query */
  async #read(query) {
    try {
      const [collections, documents] = await Promise.all([
        this.#hasCollections ? [] : this.api.collections(), this.api.documentsNamed(query),
      ]);
      this.#hasCollections = true;
      for (const one of collections) this.#learn("collections", one, collectionWords(one));
      for (const one of documents) if (one.live_version) this.#learn("documents", one, "");
    } catch {
      this.#asked.delete(query); // asked again at the next key
    }
  }

  /**
   * @param {Source["kind"]} kind
   * @param {Named} named
   * @param {string} about
   */
  #learn(kind, { id, name }, about) {
    this.#known.set(id, { kind, id, name, about });
  }

  /**
   * @param {Source} source
   * @param {{from: number, to: number}} call
   */
  #take(source, call) {
    replaceCall(this.input, call, "");
    if (!this.picked.add(source.kind, source)) this.#tooMany();
  }

  #tooMany() {
    this.tell(gettext("At most %(n)s collections and documents can be picked for one message.", { n: MAX_PICKED }));
  }

  #render() {
    const { collections, documents, attachments } = this.picked;
    const chips = [
      ...collections.map((one) => this.#chip(one, "library")),
      ...documents.map((one) => this.#chip(one, "file-text")),
      ...attachments.map((one) => showState(this.#chips.get(one) ?? this.#attachmentChip(one), one, this.picked.stateOf(one))),
    ];
    const present = [...this.list.children];
    const lost = present.findIndex((chip) => chip.contains(document.activeElement) && !chips.includes(/** @type {HTMLElement} */ (chip)));
    if (present.length !== chips.length || chips.some((chip, index) => chip !== present[index])) this.list.replaceChildren(...chips);
    this.list.hidden = !chips.length;
    if (lost >= 0) (chips[Math.min(lost, chips.length - 1)]?.querySelector("button") ?? this.input).focus();
  }

  /**
   * @param {Named | Attachment} entry
   * @param {string} iconName
   */
  #chip(entry, iconName) {
    const known = this.#chips.get(entry);
    if (known) return known;
    const remove = element("button", { type: "button", class: "picked__remove", "aria-label": gettext("Remove %(name)s", { name: entry.name }), title: gettext("Remove") }, [icon("x")]);
    remove.addEventListener("click", () => this.picked.remove(entry));
    const sign = icon(iconName);
    const isDrawn = iconName === "file-text" && isPicture(entry.name);
    const chip = element("li", { class: "source picked__chip" }, [
      isDrawn ? smallPicture(pictureUrl(/** @type {Named} */ (entry).id, 200), sign) : sign, element("span", { class: "source__name", dir: "auto", title: entry.name }, [entry.name]), remove,
    ]);
    this.#chips.set(entry, chip);
    return chip;
  }

  /**
   * With what can be done about it: another try, and a text back into the message that it was pasted into.
   * @param {Attachment} attachment
   */
  #attachmentChip(attachment) {
    const chip = this.#chip(attachment, "paperclip");
    const { file, text } = attachment;
    const remove = find(chip, ".picked__remove");
    const again = element("button", { type: "button", class: "small-button", "data-again": "" }, [gettext("Try again")]);
    again.addEventListener("click", () => {
      remove.focus(); // for this one goes
      this.attachments.send(attachment);
    });
    remove.before(
      element("span", { class: "source__place", "data-size": "" }, file ? [size(file.size)] : []),
      element("span", { class: "source__place numbers", "aria-hidden": "true" }), element("span", { class: "source__place", role: "status" }),
      again,
    );
    if (text !== null) {
      const words = gettext("Put it into the message");
      const back = element("button", { type: "button", class: "picked__text", title: words, "aria-label": `${attachment.name}: ${words}` });
      back.append(find(chip, ".source__name"));
      back.addEventListener("click", () => {
        this.picked.remove(attachment);
        insertText(this.input, text);
      });
      find(chip, ".icon").after(back);
    }
    return chip;
  }
}

/**
 * How far a file is. Its states are heard, the numbers are only seen: they come many times a second.
 * @param {HTMLElement} chip
 * @param {Attachment} attachment
 * @param {Attachment["state"]} state for the next message
 */
function showState(chip, { progress, problem, name, file }, state) {
  find(chip, "[data-again]").hidden = state !== "failed" || !file;
  find(chip, "[data-size]").hidden = state === "failed" || !file;
  chip.dataset.state = state;
  chip.style.setProperty("--progress", String(progress ?? 0));
  setText(find(chip, ".source__name"), name);
  const isCounted = state === "sending" && progress !== null && progress < 1;
  const [number, words] = [find(chip, ".numbers"), find(chip, "[role=status]")];
  setText(number, isCounted ? percent(progress) : "");
  number.hidden = !isCounted;
  words.classList.toggle("visually-hidden", isCounted);
  setText(words, { sending: gettext("uploading…"), reading: gettext("reading…"), ready: "", failed: problem }[state]);
  return chip;
}

/** @param {Source} source */
function row({ kind, id, name, about }) {
  return element("li", { id: `source-${id}`, class: "caret-menu__row caret-menu__row--source", role: "option" }, [
    icon(kind === "collections" ? "library" : "file-text"),
    element("span", { class: "caret-menu__name", dir: "auto" }, [name]),
    element("span", { class: "caret-menu__text" }, [about]),
  ]);
}

/** @param {{num_documents: number, is_mine: boolean, owner: {name: string}}} collection */
function collectionWords({ num_documents, is_mine, owner }) {
  const words = ngettext("%(n)s document", "%(n)s documents", num_documents);
  return is_mine ? words : `${words} · ${owner.name}`;
}

function emptyRow() {
  const link = element("a", { href: "/documents/" }, [gettext("Bring the first one")]);
  return element("li", { class: "caret-menu__empty" }, [`${gettext("You have no documents yet.")} `, link]);
}
