// @ts-check
/** What the menu of a message does with its text: copy it for another place, read it aloud. */

import { asPlainText, copyAsPlainText, copyAsRichText } from "./copy-as.js";
import { gettext } from "./i18n.js";
import { ReadingAloud } from "./reading-aloud.js";

export class MessageText {
  #reading = new ReadingAloud();

  /** @param {string} id */
  isReading(id) {
    return this.#reading.isReading(id);
  }

  /**
   * @param {string} act
   * @param {string} id of the message
   * @param {string} markdown its text
   * @returns {Promise<string>} what to tell the reader, if anything
   */
  async act(act, id, markdown) {
    if (act === "copy-plain") await copyAsPlainText(markdown);
    else if (act === "copy-rich") copyAsRichText(markdown);
    else if (this.#reading.isReading(id)) this.#reading.stop();
    else this.#reading.read(id, asPlainText(markdown), document.documentElement.lang);
    return act === "read" ? "" : gettext("Copied.");
  }
}
