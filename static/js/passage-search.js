// @ts-check
/** Passages of a collection that fit some words, each with the way to where it stands. */

import { viewerUrl } from "./document-links.js";
import { excerpt, placeOf } from "./document-words.js";
import { element, find, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";

const MAX_CHARS = 320;

export class PassageSearch {
  /**
   * @param {HTMLElement} root
   * @param {(query: string, signal: AbortSignal) => Promise<import("./document-api.js").Hit[]>} search
   */
  constructor(root, search) {
    this.root = root;
    this.search = search;
    this.list = find(root, "[data-passage-list]");
    this.state = find(root, "[data-passage-state]");
  }

  /** @param {string} query @param {AbortSignal} signal */
  async show(query, signal) {
    this.root.hidden = !query;
    if (!query) return this.list.replaceChildren();
    setText(this.state, gettext("Searching"));
    try {
      const hits = await this.search(query, signal);
      if (signal.aborted) return;
      this.list.replaceChildren(...hits.map((hit) => hitRow(hit, query)));
      setText(this.state, stateWords(hits));
    } catch (error) {
      if (signal.aborted) return;
      this.list.replaceChildren();
      setText(this.state, /** @type {Error} */ (error).message);
    }
  }
}

/** @param {import("./document-api.js").Hit[]} hits */
export function stateWords(hits) {
  if (!hits.length) return gettext("No passage says this.");
  if (hits.every(({ lexical_rank: rank }) => rank === null)) return gettext("Nothing has these words. Closest in meaning:");
  return ngettext("%(n)s passage found", "%(n)s passages found", hits.length);
}

/** @param {import("./document-api.js").Hit} hit @param {string} query */
function hitRow(hit, query) {
  const words = excerpt(hit.text, query, MAX_CHARS).map(({ text, isMarked }) => (isMarked ? element("mark", {}, [text]) : text));
  return element("li", { class: "passage" }, [
    element("a", { class: "passage__name", href: viewerUrl(hit) }, [element("bdi", {}, [hit.name])]),
    element("span", { class: "passage__place numbers" }, [placeOf(hit)]),
    element("p", { class: "passage__text", dir: "auto" }, words),
  ]);
}
