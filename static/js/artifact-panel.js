// @ts-check
/**
 * A block of code in the side panel, in each of the versions that the chat's answers have given
 * (artifacts.js). Whoever looks at the newest one goes along to the next, and sees it being written.
 */

import { ArtifactView } from "./artifact-view.js";
import { artifactsOf, titleIn } from "./artifacts.js";
import { isPreviewed } from "./code-view.js";
import { drawerOf, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { codeBlocks } from "./markdown.js";

const PAUSE_MS = 120; // so often an answer is read anew while it grows

/** @typedef {import("./artifacts.js").Version} Version */
/** @typedef {import("./artifact-view.js").Side} Side */

export class ArtifactPanel {
  /** @type {Version | null} */
  #shown = null;
  #isNewest = true;
  /** @type {Side} as its reader wants it */
  #side = "preview";
  #timer = 0;
  /** @type {Map<string, {text: string, blocks: Version[]}>} message → what was read in it */
  #read = new Map();

  /**
   * @param {import("./side-panel.js").SidePanel} panel
   * @param {import("./session.js").ChatSession} session
   */
  constructor(panel, session) {
    this.panel = panel;
    this.session = session;
    this.view = new ArtifactView({
      toSide: (side) => {
        this.#side = side;
        this.#draw();
      },
      move: (by) => this.#draw(by),
    });
    panel.addEventListener("closed", () => this.#forget());
    for (const news of ["path", "message"]) session.on(news, () => this.#later());
  }

  /** @param {HTMLElement} opener a button in the bar of a block of an answer */
  show(opener) {
    const message = /** @type {HTMLElement} */ (opener.closest("[data-message]")).dataset.message ?? "";
    const { text } = /** @type {import("./code-view.js").CodeView} */ (drawerOf(opener.closest(".code")));
    const blocks = this.#blocksOf(message);
    const block = blocks.find((one) => one.text.trim() === text.trim()) ?? blocks.at(-1); // the last one may have grown
    if (!block) return;
    this.panel.open(nameOf(block), this.view.root, opener);
    this.panel.toggleAttribute("data-wide", true);
    this.#shown = block;
    this.#side = "preview";
    this.#draw();
  }

  #forget() {
    this.#shown = null;
    this.#read.clear();
    this.view.clear();
    this.panel.removeAttribute("data-wide");
  }

  #later() {
    if (!this.#shown || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#draw(this.#isNewest ? Infinity : 0);
    }, PAUSE_MS);
  }

  /**
   * What is shown may have grown, be gone with its branch, or have newer versions.
   * @param {number} [by] how many versions to go on
   */
  #draw(by = 0) {
    if (!this.#shown) return;
    const { versions, index: before } = this.#versions(this.#shown);
    if (before < 0) return this.panel.close();
    const last = versions.length - 1;
    const index = Math.max(0, Math.min(before + by, last));
    const version = versions[index];
    this.#shown = version;
    this.#isNewest = index === last;
    setText(this.panel.heading, nameOf(version));
    const sides = sidesOf(version, index);
    const side = sides.includes(this.#side) ? this.#side : "code";
    this.view.show({ version, before: versions[index - 1] ?? null, number: index + 1, count: versions.length, sides, side });
  }

  /**
   * The versions of what is shown, and which of them is; -1 where it is gone.
   * @param {Version} shown
   */
  #versions({ message, number }) {
    const path = this.session.store.path().map(({ id }) => id);
    // An answer beside the one that is chosen is no part of the branch.
    const blocks = (path.includes(message) ? path : [message]).flatMap((id) => this.#blocksOf(id));
    const isShown = (/** @type {Version} */ one) => one.message === message && one.number === number;
    const versions = artifactsOf(blocks).find((some) => some.some(isShown)) ?? [];
    return { versions, index: versions.findIndex(isShown) };
  }

  /** @param {string} id @returns {Version[]} */
  #blocksOf(id) {
    const message = this.session.store.shown(id);
    if (message?.role !== "assistant") return [];
    const isRunning = message.status === "running";
    const texts = message.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    const text = `${isRunning} ${texts.join("\0")}`;
    const read = this.#read.get(id);
    if (read?.text === text) return read.blocks;
    const blocks = texts.flatMap(codeBlocks).filter(({ language }) => language !== "mermaid"); // a diagram is one
    const versions = blocks.map((block, number) => ({
      message: id, number, language: block.language, text: block.text, isWhole: block.isClosed || !isRunning,
    }));
    this.#read.set(id, { text, blocks: versions });
    return versions;
  }
}

/**
 * How a version can be looked at.
 * @param {Version} version
 * @param {number} index among its versions
 * @returns {Side[]}
 */
function sidesOf({ language, isWhole }, index) {
  const preview = isWhole && isPreviewed(language) ? [/** @type {Side} */ ("preview")] : [];
  return [...preview, "code", ...(isWhole && index ? [/** @type {Side} */ ("changes")] : [])];
}

/** @param {Version} version */
function nameOf(version) {
  return titleIn(version) || version.language || gettext("Code");
}
