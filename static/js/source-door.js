// @ts-check
/**
 * Listens for the first sign that somebody works with documents, and only then loads what shows them: the
 * picker behind `#` and the paperclip, the cards of citations, and the panel that they lead to.
 */

import { insertText } from "./caret.js";
import { find, isComposing, isPlainClick } from "./dom.js";
import { gettext } from "./i18n.js";
import { preference } from "./preferences.js";
import { keyOf } from "./shortcuts.js";
import { whenTyped } from "./typed-sign.js";

/** From here on a pasted text becomes a file of the message. */
const LONG_CHARS = 4_000;
const DOCUMENT = /^\/documents\/[0-9a-f-]{36}$/;

/**
 * @typedef {object} Page
 * @property {HTMLElement} list of the messages
 * @property {import("./side-panel.js").SidePanel} panel
 * @property {import("./composer.js").ChatComposer} composer
 * @property {import("./api.js").Api} api
 * @property {(answer: string) => Promise<import("./source-card.js").Told[]>} excerptsOf
 * @property {(words: string, more?: {action: string, run: () => void}) => void} tell
 * @property {number} maxFileBytes
 *
 * @typedef {(files: Iterable<File>, text?: string) => Promise<boolean>} Attach false where one was not taken; a `text`
 *   that was pasted is what the file is made of
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

/**
 * Why no file is taken now; null where they are.
 * @param {import("./composer.js").ChatComposer} composer
 */
export function whyNoFiles(composer) {
  if (!composer.querySelector(".composer__attach")) return gettext("Your plan has no files of your own.");
  return composer.picked.takesNoFiles ? gettext("A temporary chat keeps no files.") : null;
}

/** @param {Page} page */
function listenForPicking({ composer, api, tell, maxFileBytes }) {
  const { input, picked } = composer;
  /** @type {Promise<import("./source-picker.js").SourcePicker> | null} */
  let picker = null;
  const load = () => {
    picker ??= import("./source-picker.js").then(({ SourcePicker }) => new SourcePicker({ composer, api, tell, maxFileBytes }));
    picker.catch(() => (picker = null));
    return picker;
  };
  /** @type {Attach} */
  const attach = async (files, text) => {
    const given = [...files];
    try {
      return (await load()).attach(given, text);
    } catch {
      tell(gettext("The server cannot be reached. Nothing was uploaded."));
      return false;
    }
  };

  picked.on("changed", () => picked.size && load().catch(() => null)); // tried again at the next change
  whenTyped(input, "#", async () => (await load()).menu);
  input.addEventListener("keydown", (event) => {
    const isPlain = !isComposing(event) && !event.repeat;
    if (event.key === "Backspace" && isPlain && !input.value && picked.removeLast()) event.preventDefault();
  });
  if (composer.querySelector(".composer__attach")) listenForFiles(composer, attach, tell);
  listenForDrops({ whyNone: () => whyNoFiles(composer), attach, tell, maxBytes: maxFileBytes });
}

/**
 * Files that are chosen or pasted; a plan may have none.
 * @param {import("./composer.js").ChatComposer} composer
 * @param {Attach} attach
 * @param {Page["tell"]} tell
 */
function listenForFiles(composer, attach, tell) {
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
}

/**
 * Unless its writer says otherwise: by Shift, in the settings, or afterwards.
 * @param {import("./composer.js").ChatComposer} composer
 * @param {Attach} attach
 * @param {Page["tell"]} tell
 */
function listenForLongTexts({ input, picked }, attach, tell) {
  let isPlain = false;
  input.addEventListener("keydown", (event) => {
    if (keyOf(event) === "v") isPlain = event.shiftKey;
  });
  input.addEventListener("paste", async (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const wantsText = isPlain || preference("long-paste") === "text";
    isPlain = false;
    if (event.defaultPrevented || wantsText || picked.takesNoFiles || text.length < LONG_CHARS) return;
    event.preventDefault();
    try {
      await (await import("./pasted.js")).attachText({ input, picked, text, attach, tell });
    } catch {
      insertText(input, text); // the server is away: nothing is lost
    }
  });
}

/**
 * A file that misses the chat by an inch must not be opened in its place.
 * @param {ConstructorParameters<typeof import("./file-drops.js").FileDrops>[0]} page
 */
function listenForDrops(page) {
  /** @type {Promise<import("./file-drops.js").FileDrops | null> | null} */
  let loading = null;
  /** @type {import("./file-drops.js").FileDrops | null} */
  let drops = null;
  let isOver = false;
  const hasFiles = (/** @type {DragEvent} */ event) => Boolean(event.dataTransfer?.types.includes("Files"));
  const leave = () => {
    isOver = false;
    drops?.hide();
  };
  /** It has a place of its own. @param {DragEvent} event */
  const isOthers = ({ defaultPrevented, target }) => defaultPrevented || /** @type {Element} */ (target).closest?.("input[type=file]");
  document.addEventListener("dragover", async (event) => {
    if (isOthers(event)) return leave();
    if (!hasFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    const isBusy = document.querySelector("dialog[open]") !== null;
    if (isBusy || page.whyNone()) event.dataTransfer.dropEffect = "none";
    isOver = !isBusy;
    loading ??= import("./file-drops.js").then(({ FileDrops }) => (drops = new FileDrops(page)), () => (loading = null));
    await loading;
    if (isOver) drops?.show();
  });
  document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? leave());
  document.addEventListener("drop", (event) => {
    if (isOthers(event)) return leave();
    const { dataTransfer } = event;
    if (!hasFiles(event) || !dataTransfer) return;
    event.preventDefault();
    const isTaken = isOver;
    leave();
    if (!isTaken) return;
    if (drops) drops.drop(dataTransfer);
    else if (!page.whyNone()) page.attach([...dataTransfer.files]); // it is quicker than what would show it
  });
}
