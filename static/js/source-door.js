// @ts-check
/**
 * Listens for the first sign that somebody works with documents, and only then loads what shows them: the
 * picker behind `#` and the paperclip, the cards of citations, and the panel that they lead to.
 */

import { insertText } from "./caret.js";
import { find, isPlainClick } from "./dom.js";
import { gettext } from "./i18n.js";
import { preference } from "./preferences.js";
import { whenTyped } from "./typed-sign.js";

/** From here on a pasted text becomes a file of the message. */
const LONG_CHARS = 4_000;
const DOCUMENT = /^\/documents\/[0-9a-f-]{36}$/;

/**
 * @typedef {object} Page
 * @property {HTMLElement} page
 * @property {HTMLElement} list of the messages
 * @property {import("./side-panel.js").SidePanel} panel
 * @property {import("./composer.js").ChatComposer} composer
 * @property {import("./api.js").Api} api
 * @property {(answer: string) => Promise<import("./source-card.js").Told[]>} excerptsOf
 * @property {(words: string, more?: {action: string, run: () => void}) => void} tell
 *
 * @param {Page} page
 */
export function listenForSources(page) {
  listenForCitations(page);
  listenForPicking(page);
}

/** @param {Page} page */
function listenForCitations({ list, panel, excerptsOf }) {
  /** @type {Promise<import("./source-card.js").SourceCard> | null} */
  let card = null;
  const load = () => {
    card ??= import("./source-card.js").then(({ SourceCard }) => new SourceCard(list, excerptsOf));
    card.catch(() => (card = null)); // the link leads there without it, too
    return card;
  };
  const over = async (/** @type {Event} */ event) => {
    const link = /** @type {Element} */ (event.target).closest?.("[data-excerpt]");
    if (!link) return;
    const isTouch = event instanceof PointerEvent && event.pointerType === "touch";
    if (event.type === "click" ? !isTouch : isTouch) return;
    if (isTouch) event.preventDefault(); // a finger cannot hover: it opens the card, which has the link
    (await load().catch(() => null))?.show(/** @type {HTMLElement} */ (link), event.type);
  };
  for (const type of ["pointerover", "focusin", "click"]) list.addEventListener(type, over);
  /** @type {Promise<import("./source-panel.js").SourcePanel> | null} */
  let source = null;
  document.addEventListener("click", async (event) => {
    const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest?.(":is(message-list, .source-card) a[href^='/documents/']"));
    if (!link || !isPlainClick(event) || !DOCUMENT.test(link.pathname)) return;
    event.preventDefault();
    const opener = link.closest(".source-card") ? list.querySelector("[data-excerpt][aria-describedby]") : link;
    card?.then((shown) => shown.hide(), () => {});
    try {
      source ??= import("./source-panel.js").then(({ SourcePanel }) => new SourcePanel(panel));
      (await source).show(link.getAttribute("href") ?? "", nameOf(opener ?? link), /** @type {HTMLElement | null} */ (opener));
    } catch {
      source = null;
      window.open(link.href, "_blank", "noopener");
    }
  });
}

/** What a link to a document calls it. @param {Element} link */
function nameOf(link) {
  return link.querySelector(".source__name")?.textContent ?? /** @type {HTMLElement} */ (link).dataset.name ?? "";
}

/** @param {Page} page */
function listenForPicking({ page, composer, api, tell }) {
  const { input, picked } = composer;
  /** @type {Promise<import("./source-picker.js").SourcePicker> | null} */
  let picker = null;
  const load = () => {
    picker ??= import("./source-picker.js").then(({ SourcePicker }) => new SourcePicker({ composer, api, tell }));
    picker.catch(() => (picker = null));
    return picker;
  };
  const attach = async (/** @type {Iterable<File>} */ files) => {
    const given = [...files];
    try {
      (await load()).attach(given);
    } catch {
      tell(gettext("The server cannot be reached. Nothing was uploaded."));
    }
  };

  picked.on("changed", () => picked.size && load().catch(() => null)); // tried again at the next change
  whenTyped(input, "#", async () => (await load()).menu);
  input.addEventListener("keydown", (event) => {
    const isPlain = !event.isComposing && !event.repeat;
    if (event.key === "Backspace" && isPlain && !input.value && picked.removeLast()) event.preventDefault();
  });
  if (composer.querySelector(".composer__attach")) listenForFiles(page, composer, attach, tell);
}

/**
 * Files that are chosen, pasted or dropped; a plan may have none.
 * @param {HTMLElement} page
 * @param {import("./composer.js").ChatComposer} composer
 * @param {(files: FileList | File[]) => void} attach
 * @param {Page["tell"]} tell
 */
function listenForFiles(page, composer, attach, tell) {
  const { input, picked } = composer;
  const chooser = /** @type {HTMLInputElement} */ (find(composer, ".composer__files"));
  find(composer, ".composer__attach").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    attach(chooser.files ?? []);
    chooser.value = ""; // the same file may be chosen again
  });
  input.addEventListener("paste", (event) => {
    const { files } = /** @type {DataTransfer} */ (event.clipboardData);
    // What is copied from a text processor is text, and a picture of it.
    if (picked.takesNoFiles || !files.length || event.clipboardData?.getData("text/plain")) return;
    event.preventDefault();
    attach(files);
  });
  listenForLongTexts(composer, attach, tell);
  listenForDrops(page, composer, attach);
}

/**
 * Unless its writer says otherwise: by Shift, in the settings, or afterwards.
 * @param {import("./composer.js").ChatComposer} composer
 * @param {(files: File[]) => void} attach
 * @param {Page["tell"]} tell
 */
function listenForLongTexts({ input, picked }, attach, tell) {
  let isPlain = false;
  input.addEventListener("keydown", ({ key, shiftKey }) => {
    if (key.toLowerCase() === "v") isPlain = shiftKey;
  });
  input.addEventListener("paste", async (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const wantsText = isPlain || preference("long-paste") === "text";
    isPlain = false;
    if (event.defaultPrevented || wantsText || picked.takesNoFiles || text.length < LONG_CHARS) return;
    event.preventDefault();
    try {
      (await import("./pasted.js")).attachText({ input, picked, text, attach, tell });
    } catch {
      insertText(input, text); // the server is away: nothing is lost
    }
  });
}

/**
 * @param {HTMLElement} page
 * @param {import("./composer.js").ChatComposer} composer
 * @param {(files: FileList) => void} attach
 */
function listenForDrops(page, composer, attach) {
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") && !composer.picked.takesNoFiles;
  const mark = (/** @type {boolean} */ isOver) => composer.form.toggleAttribute("data-drop", isOver);
  page.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  page.addEventListener("dragleave", (event) => {
    if (!page.contains(/** @type {Node | null} */ (event.relatedTarget))) mark(false);
  });
  page.addEventListener("drop", (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    attach(/** @type {DataTransfer} */ (event.dataTransfer).files);
  });
}
