// @ts-check
/** What the menu of a message does with its text: copy it for another place, read it aloud. */

import { copyAsPlainText, copyAsRichText } from "./copy-as.js";
import { DeviceVoice } from "./device-voice.js";
import { gettext } from "./i18n.js";
import { toHtml } from "./markdown.js";
import { ReadingAloud } from "./reading-aloud.js";
import { ReadingBar } from "./reading-bar.js";
import { sanitised } from "./sanitise.js";
import { SiteVoice } from "./site-voice.js";
import { spokenText } from "./spoken-text.js";
import { languageOf } from "./text-language.js";

export class MessageText {
  #device = new DeviceVoice();

  /** @param {((text: string, signal: AbortSignal) => Promise<ArrayBuffer>) | null} fetchSound of a model of the site */
  constructor(fetchSound) {
    this.isSpokenHere = fetchSound !== null;
    this.reading = new ReadingAloud(fetchSound ? new SiteVoice(fetchSound) : this.#device);
    new ReadingBar(this.reading);
  }

  async canRead() {
    return this.isSpokenHere || this.#device.isThere();
  }

  /** @param {string} id */
  isReading(id) {
    return this.reading.isReading(id);
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
    else if (this.isReading(id)) this.reading.stop();
    else return this.#read(id, markdown);
    return act === "read" ? "" : gettext("Copied.");
  }

  /**
   * Begins; what goes wrong later is told as well.
   * @param {string} id
   * @param {string} markdown
   */
  async #read(id, markdown) {
    const holder = document.createElement("div");
    holder.append(sanitised(toHtml(markdown)));
    const text = spokenText(holder);
    if (!text) return gettext("There is nothing in it that can be read aloud.");
    const language = languageOf(text, document.documentElement.lang.split("-")[0]);
    if (!this.isSpokenHere && !this.#device.voiceFor(language)) {
      return gettext("This device has no voice of its own for the language of this text.");
    }
    this.reading.read(id, text, language).catch((error) => this.failed(error));
    return "";
  }

  /** What to do where reading breaks off. @param {unknown} error */
  failed(error) {
    console.warn(error);
  }
}
