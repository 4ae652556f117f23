// @ts-check
/** Small pictures in the chips of files that are attached: of what is in this browser, before the server has it. */

import { element } from "./dom.js";

/** What browsers draw; of SVG too little could be seen at this size. */
const DRAWN = /^image\/(png|jpeg|gif|webp|bmp|avif)$/;

/** @typedef {import("./picked-sources.js").Attachment} Attachment */

export class AttachmentPictures {
  /** @type {Map<Attachment, string>} what they are shown by, to be given back */
  #urls = new Map();

  /**
   * @param {import("./picked-sources.js").PickedSources} picked
   * @param {Pick<typeof URL, "createObjectURL" | "revokeObjectURL">} [urls]
   */
  constructor(picked, urls = URL) {
    this.picked = picked;
    this.urls = urls;
    picked.on("changed", () => this.#giveBack());
  }

  /**
   * @param {Element | undefined} chip
   * @param {Attachment} attachment
   * @param {File} file
   */
  show(chip, attachment, file) {
    const sign = chip?.querySelector(".icon");
    if (!sign || !DRAWN.test(file.type)) return;
    const url = this.urls.createObjectURL(file);
    this.#urls.set(attachment, url);
    const picture = smallPicture(url, sign);
    sign.replaceWith(picture);
  }

  #giveBack() {
    for (const [attachment, url] of [...this.#urls]) {
      if (this.picked.has(attachment)) continue;
      this.urls.revokeObjectURL(url);
      this.#urls.delete(attachment);
    }
  }
}

/**
 * @param {string} src
 * @param {Element} sign in its place where it cannot be drawn; its name stands beside it
 */
export function smallPicture(src, sign) {
  const picture = element("img", { class: "picked__picture", src, alt: "", draggable: "false" });
  picture.addEventListener("error", () => picture.replaceWith(sign));
  return picture;
}
