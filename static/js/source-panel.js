// @ts-check
/** A document in the side panel, at the passage that an answer cites. Its page shows more: a PDF's own pages. */

import { pageAt, pageName } from "./document-places.js";
import { pictureUrl } from "./document-links.js";
import { DocumentText } from "./document-text.js";
import { element } from "./dom.js";
import { gettext } from "./i18n.js";
import { queryOf, request } from "./api.js";

/**
 * What an address of a document names (document-links.js); its passage in code points of its text.
 * @param {string} href
 */
export function placeAt(href) {
  const { pathname, searchParams } = new URL(href, "http://here");
  const [start, end] = ["start", "end"].map((name) => Number.parseInt(searchParams.get(name) ?? "", 10));
  return { document: pathname.split("/")[2], version: searchParams.get("version") ?? "", passage: start < end ? { start, end } : null };
}

export class SourcePanel {
  #asked = 0;

  /** @param {import("./side-panel.js").SidePanel} panel */
  constructor(panel) {
    this.panel = panel;
    panel.addEventListener("closed", () => this.#asked++);
  }

  /**
   * @param {string} href of a document, at a passage of it if one is named
   * @param {string} name
   * @param {HTMLElement | null} opener gets the focus back
   */
  async show(href, name, opener) {
    const { panel } = this;
    const { document, version, passage } = placeAt(href);
    panel.open(name, note(gettext("Opening"), { "aria-busy": "true" }), opener);
    const asked = ++this.#asked;
    const isGone = () => asked !== this.#asked;
    try {
      const facts = await request("", "GET", `/api/documents/${document}/view${queryOf({ version })}`);
      if (isGone()) return;
      await this.#draw(facts, facts.version.id === version ? passage : null, href, isGone);
    } catch (error) {
      if (!isGone()) panel.body.replaceChildren(note(/** @type {Error} */ (error).message, { role: "alert" }), opened(href));
    }
  }

  /**
   * @param {any} facts of GET /api/documents/<id>/view
   * @param {import("./document-places.js").Passage | null} passage
   * @param {string} href
   * @param {() => boolean} isGone whether something else is shown by now
   */
  async #draw({ document: shown, version }, passage, href, isGone) {
    const { body, heading } = this.panel;
    const pages = version.pages.length ? version.pages : [[0, version.num_chars, "", 0, 0]];
    const root = element("div", { class: "viewer__text" });
    const place = passage && pages.length > 1 ? [element("span", { class: "source-panel__place", dir: "auto" }, [pageName(pages, pageAt(pages, passage.start) - 1)])] : [];
    const head = element("p", { class: "source-panel__head" }, [...place, opened(href)]);
    body.replaceChildren(head, ...(shown.kind === "image" ? [] : noticesOf(version, passage, href)), root);
    if (shown.kind === "image") head.after(element("img", { class: "source-panel__picture", src: pictureUrl(shown.id, 800), alt: shown.name }));
    if (!version.num_chars) return;
    const text = new DocumentText(root, {
      numChars: version.num_chars,
      pages,
      passage,
      isCode: shown.media_type === "text/x-code",
      scroller: body,
      read: (start, end) => request("", "GET", `/api/documents/${shown.id}/text${queryOf({ version: version.id, start, end })}`),
    });
    await text.show(passage?.start ?? 0);
    if (isGone()) return;
    text.mark?.scrollIntoView({ block: "center", behavior: "instant" });
    const isReading = heading === globalThis.document.activeElement;
    if (isReading) text.mark?.focus({ preventScroll: true });
  }
}

/**
 * @param {any} version
 * @param {import("./document-places.js").Passage | null} passage
 * @param {string} href
 */
function noticesOf(version, passage, href) {
  if (!version.num_chars) return [note(gettext("There is no text of this document to be shown here."), {})];
  if (passage || !placeAt(href).passage) return [];
  return [note(gettext("The document has changed since. What was cited may stand elsewhere in it."), {})];
}

/** The way to its page. @param {string} href */
function opened(href) {
  return element("a", { href, target: "_blank", rel: "noopener" }, [gettext("Open in the document")]);
}

/**
 * @param {string} words
 * @param {Record<string, string>} attributes
 */
function note(words, attributes) {
  return element("p", { class: "trace__note", ...attributes }, [words]);
}
