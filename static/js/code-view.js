// @ts-check
/** A block of code in its frame: the language, what one can do with it, and colours as it grows. */

import { showBidi } from "./bidi.js";
import { colouredEnd, firstPart, highlighter, isColourable } from "./code-colour.js";
import { element, find, icon, morphChildren, setDrawer, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { preference } from "./preferences.js";
import { sanitised } from "./sanitise.js";
import { BIDI_IN_CODE } from "./text-safety.js";

/** Whether what is written in a language can be shown as what it is (preview.js). @param {string} language */
export function isPreviewed(language) {
  return ["html", "svg"].includes(language.toLowerCase());
}

/**
 * Put a frame around the `code` of a `pre`.
 * @param {HTMLElement} code
 */
export function frameCode(code) {
  const pre = /** @type {HTMLElement} */ (code.parentElement);
  const language = languageOf(code);
  const isWrapped = preference("wrap-code") === "yes"; // as the reader had it last (block-actions.js)
  const frame = element("div", { class: "code", dir: "ltr", ...(isWrapped ? { "data-wrapped": "" } : {}) }, [codeBar(isWrapped)]);
  pre.replaceWith(frame);
  frame.append(pre);
  setAttributes(pre, scrollable(gettext("Code")));
  new CodeView(frame, language, code.textContent ?? "");
}

/** @param {HTMLElement} code */
export function languageOf(code) {
  return code.className.match(/language-(\S+)/)?.[1] ?? "";
}

/** @param {boolean} isWrapped */
function codeBar(isWrapped) {
  return element("div", { class: "code__bar" }, [
    element("span", { class: "code__language" }),
    element("span", { class: "code__actions" }, [
      barButton("preview-code", "play", gettext("Preview"), { "aria-pressed": "false", hidden: "" }, true),
      barButton("full-screen", "maximize", gettext("Full screen"), { hidden: "" }),
      ...(document.querySelector("side-panel") ? [barButton("open-beside", "panel-right", gettext("Open beside"))] : []),
      barButton("wrap-code", "text-wrap", gettext("Wrap lines"), { "aria-pressed": String(isWrapped) }),
      barButton("download-code", "download", gettext("Download")),
      barButton("copy-code", "copy", gettext("Copy"), {}, true),
    ]),
  ]);
}

/**
 * A small button of a bar; block-actions.js does what `action` says.
 * @param {string} action
 * @param {string} iconName
 * @param {string} words
 * @param {Record<string, string>} [more]
 * @param {boolean} [showsWords]
 */
export function barButton(action, iconName, words, more = {}, showsWords = false) {
  const label = showsWords ? {} : { "aria-label": words, title: words };
  const attributes = { type: "button", class: "bar-button", [`data-${action}`]: "", ...label, ...more };
  return element("button", attributes, [icon(iconName), ...(showsWords ? [element("span", {}, [words])] : [])]);
}

/**
 * What scrolls sideways has to be reachable by keyboard.
 * @param {string} label
 */
export function scrollable(label) {
  return { tabindex: "0", role: "group", "aria-label": label };
}

/**
 * @param {Element} target
 * @param {Record<string, string>} attributes
 */
export function setAttributes(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) target.setAttribute(name, value);
}

/** Draws the code of a frame in parts; those that are whole stay untouched, and a selection in them. */
export class CodeView {
  /** The text of the whole parts, that are drawn; behind them there is at most one more. */
  #settled = "";
  #numSettled = 0;
  /** @type {string | null} */
  #drawn = null;
  /** @type {any} the highlighter that was used */
  #library = null;

  /**
   * @param {HTMLElement} frame
   * @param {string} language
   * @param {string} text
   */
  constructor(frame, language, text) {
    this.frame = frame;
    this.code = find(frame, "code");
    this.text = text;
    this.setLanguage(language);
    setDrawer(frame, this);
  }

  /** @param {string} language as the fence names it */
  setLanguage(language) {
    if (language === this.language) return;
    this.language = language;
    // A name has no use for direction marks, and they would outlive being shown (bidi.js).
    setText(find(this.frame, ".code__language"), language.replace(BIDI_IN_CODE, "") || "text");
    find(this.frame, "[data-preview-code]").hidden = !isPreviewed(language);
    find(this.frame, "pre").setAttribute("aria-label", gettext("Code, %(language)s", { language: language || gettext("text") }));
    if (language) this.code.className = `language-${language}`;
    else this.code.removeAttribute("class");
    this.#startOver();
  }

  get source() {
    return this.text.replace(/\n$/, "");
  }

  /** @param {CodeView} other what it should look like */
  take(other) {
    this.setLanguage(other.language ?? "");
    this.text = other.text;
    return true;
  }

  draw() {
    const isWanted = Boolean(this.language) && isColourable(this.text.length);
    const library = isWanted ? highlighter.get(() => this.draw()) : null;
    if (library !== this.#library || !this.text.startsWith(this.#settled)) this.#startOver();
    if (this.text === this.#drawn) return;
    this.#library = library;
    this.#drawn = this.text;
    this.#drawEnd();
  }

  /** Draw what follows the settled parts. */
  #drawEnd() {
    const parts = document.createDocumentFragment();
    const numBefore = this.#numSettled;
    let rest = this.text.slice(this.#settled.length);
    for (let part; (part = firstPart(this.#library, this.language ?? "", rest)); ) {
      parts.append(partOf(part.html, rest.slice(0, part.numChars)));
      this.#settled += rest.slice(0, part.numChars);
      this.#numSettled += 1;
      rest = rest.slice(part.numChars);
    }
    if (rest) parts.append(partOf(colouredEnd(this.#library, this.language ?? "", rest), rest));
    morphChildren(this.code, parts, numBefore);
  }

  #startOver() {
    this.#settled = "";
    this.#numSettled = 0;
    this.#drawn = null;
  }
}

/**
 * Some lines in a box of their own: what is added behind it does not lay it out anew.
 * @param {string | null} html null for plain text
 * @param {string} text
 */
function partOf(html, text) {
  const inside = html === null ? document.createDocumentFragment() : sanitised(html);
  if (html === null) inside.append(text);
  showBidi(inside, true);
  return element("span", { class: "code__part" }, [inside]);
}
