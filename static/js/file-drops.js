// @ts-check
/** <div class="drop-overlay">: what a file is dropped on, which is the whole window, and what becomes of it. */

import { filesOf } from "./document-files.js";
import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";
import { size } from "./import-words.js";

export class FileDrops {
  #overlay = element("div", { class: "drop-overlay", role: "status" });

  /**
   * @param {object} page
   * @param {() => string | null} page.whyNone why no file is taken now
   * @param {(files: File[]) => unknown} page.attach
   * @param {(words: string) => void} page.tell
   * @param {number} page.maxBytes of one file
   */
  constructor({ whyNone, attach, tell, maxBytes }) {
    this.whyNone = whyNone;
    this.attach = attach;
    this.tell = tell;
    this.maxBytes = maxBytes;
  }

  show() {
    if (this.#overlay.isConnected) return;
    const why = this.whyNone();
    const words = why
      ? [element("strong", {}, [why])]
      : [
          element("strong", {}, [gettext("Drop files to attach them")]),
          element("span", {}, [gettext("PDF, Word, PowerPoint, Excel, e-books, web pages, e-mail, pictures, text and code are read.")]),
          element("span", {}, [gettext("Up to %(size)s each.", { size: size(this.maxBytes) })]),
        ];
    this.#overlay.toggleAttribute("data-none", why !== null);
    this.#overlay.replaceChildren(element("p", {}, [icon("paperclip"), ...words]));
    document.body.append(this.#overlay);
  }

  hide() {
    this.#overlay.remove();
  }

  /** @param {DataTransfer} transfer */
  async drop(transfer) {
    this.hide();
    const why = this.whyNone();
    if (why) return this.tell(why);
    const files = (await filesOf(transfer)).map(({ file }) => file);
    if (files.length) this.attach(files);
  }
}
