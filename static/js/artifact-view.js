// @ts-check
/** What the panel of an artifact shows: which version, as what it is, as code, or as what has changed in it. */

import { actOnBlock } from "./block-actions.js";
import { barButton, frameCode, scrollable } from "./code-view.js";
import { drawerOf, element, find, icon, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";
import { folded, lineDiff } from "./line-diff.js";
import { fillScreen, previewOf } from "./preview.js";

/**
 * @typedef {"preview" | "code" | "changes"} Side
 * @typedef {import("./artifacts.js").Version} Version
 *
 * @typedef {object} Shown
 * @property {Version} version
 * @property {Version | null} before
 * @property {number} number of the version, from 1
 * @property {number} count of versions
 * @property {Side[]} sides that there are
 * @property {Side} side
 */

export class ArtifactView {
  #drawn = "";
  #head = headOf();
  #body = element("div", { class: "artifact__body" });
  root = element("div", { class: "artifact" }, [this.#head, this.#body]);

  /**
   * @param {object} reader
   * @param {(side: Side) => void} reader.toSide
   * @param {(by: number) => void} reader.move to a version before or after
   */
  constructor({ toSide, move }) {
    this.root.addEventListener("click", ({ target }) => {
      const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("button"));
      if (button?.dataset.side) toSide(/** @type {Side} */ (button.dataset.side));
      else if (button?.dataset.move && button.getAttribute("aria-disabled") !== "true") move(Number(button.dataset.move));
      else if (button?.hasAttribute("data-fill-screen")) fillScreen(this.#body);
      else if (button?.closest(".code")) actOnBlock(button);
    });
  }

  clear() {
    this.#drawn = "";
    this.#body.replaceChildren();
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#showHead(shown);
    const { version, before, side } = shown;
    const place = `${side} ${version.message} ${version.number} ${before?.message} ${before?.number}`;
    const isSame = this.#drawn.startsWith(`${place}\0`);
    const drawn = `${place}\0${version.text}\0${before?.text}`;
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    if (side === "preview") this.#body.replaceChildren(previewOf(version.language, version.text));
    else if (side === "changes") this.#body.replaceChildren(changesOf(before?.text ?? "", version.text));
    else this.#showCode(version, isSame);
  }

  /** @param {Shown} shown */
  #showHead({ version, number, count, sides, side }) {
    for (const button of /** @type {NodeListOf<HTMLElement>} */ (this.#head.querySelectorAll("[data-side]"))) {
      button.hidden = sides.length < 2 || !sides.includes(/** @type {Side} */ (button.dataset.side));
      button.setAttribute("aria-pressed", String(button.dataset.side === side));
    }
    find(this.#head, ".versions").hidden = count < 2;
    setText(find(this.#head, ".numbers"), `${number}/${count}`);
    find(this.#head, "[data-move='-1']").setAttribute("aria-disabled", String(number === 1));
    find(this.#head, "[data-move='1']").setAttribute("aria-disabled", String(number === count));
    find(this.#head, "[data-fill-screen]").hidden = side !== "preview";
    setText(find(this.#head, ".artifact__state"), version.isWhole ? "" : gettext("Being written"));
  }

  /**
   * @param {Version} version
   * @param {boolean} isSame as the one that is shown; it has grown
   */
  #showCode({ language, text }, isSame) {
    if (!isSame) {
      const code = element("code", language ? { class: `language-${language}` } : {});
      const holder = element("div", {}, [element("pre", {}, [code])]);
      frameCode(code);
      for (const button of holder.querySelectorAll("[data-open-beside], [data-preview-code]")) button.remove();
      this.#body.replaceChildren(...holder.childNodes);
    }
    const view = /** @type {import("./code-view.js").CodeView} */ (drawerOf(this.#body.firstChild));
    view.text = text;
    view.draw();
  }
}

function headOf() {
  const move = (/** @type {string} */ by, /** @type {string} */ words, /** @type {string} */ sign) =>
    element("button", { type: "button", class: "small-button", "data-move": by, "aria-label": words, title: words }, [icon(sign)]);
  const side = (/** @type {Side} */ name, /** @type {string} */ words) =>
    element("button", { type: "button", class: "bar-button", "data-side": name, "aria-pressed": "false" }, [words]);
  return element("div", { class: "artifact__head" }, [
    element("div", { class: "artifact__sides", role: "group", "aria-label": gettext("Show") }, [
      side("preview", gettext("Preview")), side("code", gettext("Code")), side("changes", gettext("Changes")),
    ]),
    element("span", { class: "artifact__state", role: "status" }),
    barButton("fill-screen", "maximize", gettext("Full screen"), { hidden: "" }),
    element("div", { class: "versions", role: "group", "aria-label": gettext("Versions") }, [
      move("-1", gettext("Version before"), "chevron-left"), element("span", { class: "numbers" }), move("1", gettext("Version after"), "chevron-right"),
    ]),
  ]);
}

/**
 * @param {string} before
 * @param {string} after
 */
function changesOf(before, after) {
  const diff = lineDiff(before, after);
  const count = (/** @type {string} */ kind) => diff.filter((line) => line.kind === kind).length;
  const [added, removed] = [count("added"), count("removed")];
  if (!added && !removed) return element("p", { class: "artifact__note" }, [gettext("Nothing has changed since the version before.")]);
  const words = gettext("Lines since the version before: +%(added)s, −%(removed)s", { added, removed });
  const rows = folded(diff).map((line) => {
    if (line.kind === "left-out") return element("span", { class: "diff__left-out" }, [ngettext("%(n)s line is the same", "%(n)s lines are the same", line.count)]);
    const [tag, sign] = { same: ["span", " "], added: ["ins", "+"], removed: ["del", "−"] }[line.kind];
    return element(tag, { class: `diff__line diff__line--${line.kind}`, "data-sign": sign }, [line.text || " "]);
  });
  return element("div", { class: "diff" }, [
    element("p", { class: "artifact__note" }, [words]),
    element("pre", { class: "diff__lines", dir: "ltr", ...scrollable(gettext("Changes")) }, rows),
  ]);
}
