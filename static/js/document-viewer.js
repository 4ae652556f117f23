// @ts-check
/** The page of a document: its pages or its text, at the passage that the address names. */

import { DocumentPictures } from "./document-pictures.js";
import { pageAt, pageName } from "./document-places.js";
import { DocumentText } from "./document-text.js";
import { stateOf } from "./document-words.js";
import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { size } from "./import-words.js";
import { showLocalTimes } from "./local-times.js";
import { followTheme } from "./theme.js";

const POLL_MS = 2000;
const MAX_LISTED = 500;
const UNREAD = ["queued", "parsing"];
const UNFINISHED = [...UNREAD, "embedding"];

const { document: shown, version, passage } = JSON.parse(find(document, "#viewer").textContent);
const base = `/api/documents/${shown.id}`;
/** @type {import("./document-places.js").Page[]} */
const pages = version.pages.length ? version.pages : [[0, version.num_chars, "", 0, 0]];
const pagesRoot = find(document, "[data-pages]");
const textRoot = find(document, "[data-text]");
const news = find(document, "[data-news]");
const voice = find(document, "[data-voice]");
const goTo = find(document, "[data-go-to]");
const toPassage = find(document, "[data-to-passage]");

/** @type {DocumentPictures | null} */
let pictures = null;
/** @type {DocumentText | null} */
let text = null;
let isText = shown.kind === "text";
let current = 1;
let isCounting = false;

/**
 * @param {string} path
 * @param {Record<string, string | number>} query
 */
async function ask(path, query) {
  const given = new URLSearchParams({ version: version.id, ...query });
  const response = await fetch(`${base}/${path}?${given}`).catch(() => {
    throw new Error(gettext("The server cannot be reached."));
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error?.message ?? gettext("The server answered %(status)s.", { status: response.status }));
  return answer;
}

// --- what is shown -----------------------------------------------------------------------------

/** @param {number} place a character */
async function showText(place) {
  isText = true;
  pagesRoot.hidden = true;
  textRoot.hidden = false;
  text ??= new DocumentText(textRoot, {
    numChars: version.num_chars,
    pages,
    passage,
    isCode: shown.media_type === "text/x-code",
    read: (start, end) => ask("text", { start, end }),
  });
  await text.show(place);
}

function showPictures() {
  isText = false;
  textRoot.hidden = true;
  pagesRoot.hidden = false;
  if (pictures) return;
  pictures = new DocumentPictures(pagesRoot, pages, (number, width) => `${base}/pages/${number}?version=${version.id}&width=${width}`);
  pictures.addEventListener("page", () => showCurrent(pictures?.current ?? 1));
}

async function goToPassage() {
  if (!passage) return;
  if (isText) {
    if (!text?.mark) await showText(passage.start);
    reveal(text?.mark ?? null, "center");
    text?.mark?.focus({ preventScroll: true });
  } else {
    const page = pageAt(pages, passage.start);
    reveal(pictures?.sheet(page) ?? null, "start");
    reveal(await marked(), "center");
    pictures?.sheet(page)?.focus({ preventScroll: true });
  }
  setText(voice, gettext("The passage is on %(page)s.", { page: pageName(pages, pageAt(pages, passage.start) - 1) }));
}

/** The first rectangle of the passage; null where it is known in the text only. */
async function marked() {
  try {
    const found = await ask("boxes", passage);
    const first = pictures?.mark(found.pages);
    if (first) return first;
  } catch {
    // The page itself says what is wrong with the file.
  }
  if (version.num_chars) tell(gettext("Where the passage is on this page is not known. The text shows it."));
  return null;
}

/** @param {HTMLElement | null} target @param {ScrollLogicalPosition} block */
function reveal(target, block) {
  target?.scrollIntoView({ block, behavior: "instant" });
}

/** @param {string} words */
function tell(words) {
  news.hidden = !words;
  setText(news, words);
}

// --- the bar -----------------------------------------------------------------------------------

function offerPages() {
  if (pages.length < 2) return;
  const isListed = shown.kind === "text" && pages.length <= MAX_LISTED;
  const field = isListed
    ? element("select", { name: "page", "aria-label": gettext("Go to") }, pages.map((_, index) => element("option", { value: String(index + 1) }, [pageName(pages, index)])))
    : element("input", { name: "page", type: "number", min: "1", max: String(pages.length), value: "1", inputmode: "numeric", "aria-label": gettext("Page") });
  goTo.replaceChildren(field, ...(isListed ? [] : [gettext("of %(n)s", { n: pages.length })]));
  goTo.hidden = false;
  goTo.addEventListener("change", () => goToPage(Number(goTo.elements.page.value)));
  goTo.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
}

/** @param {number} number */
async function goToPage(number) {
  const page = pages[number - 1];
  if (!page) return showCurrent(current);
  if (isText) {
    if (!text?.label(number)) await showText(page[0]);
    reveal(text?.label(number) ?? null, "start");
  } else reveal(pictures?.sheet(number) ?? null, "start");
}

/** @param {number} number */
function showCurrent(number) {
  current = number;
  const field = goTo.elements.page;
  if (field && document.activeElement !== field) field.value = String(number);
}

addEventListener("scroll", () => {
  if (!isText || isCounting || pages.length < 2) return;
  isCounting = true;
  requestAnimationFrame(() => {
    isCounting = false;
    showCurrent(text?.current ?? current);
  });
});

for (const radio of document.querySelectorAll("input[name=shown]")) {
  radio.addEventListener("change", async () => {
    const here = current;
    tell("");
    if (/** @type {HTMLInputElement} */ (radio).value === "text") {
      await showText(passage ? passage.start : pages[here - 1][0]);
      if (!passage) reveal(text?.label(here) ?? null, "start");
    } else {
      showPictures();
      if (!passage) reveal(pictures?.sheet(here) ?? null, "start");
    }
    if (passage) await goToPassage();
  });
}

toPassage.addEventListener("click", goToPassage);

/** Nothing of it can be shown before it is read; then it tells how many of its passages can be found. */
async function follow() {
  try {
    const { version: now, document: of } = await ask("view", {});
    if (UNREAD.includes(version.state) && !UNREAD.includes(now.state)) return location.reload();
    const badge = find(document, ".viewer__facts .badge");
    const { state, text } = stateOf({ ...of, version: now });
    badge.dataset.state = state;
    setText(badge, text);
    if (!UNFINISHED.includes(now.state)) return;
  } catch {
    // It is asked again: the server may be away for a moment.
  }
  setTimeout(follow, POLL_MS);
}

/** On a narrow window the facts stand in the way of the document. */
function foldFacts() {
  const narrow = matchMedia("(width < 64rem)");
  const details = find(document, ".viewer__about details");
  const fold = () => (details.open = !narrow.matches);
  narrow.addEventListener("change", fold);
  fold();
}

async function start() {
  foldFacts();
  followTheme();
  showLocalTimes(document);
  setText(find(document, "[data-size]"), size(version.size_bytes));
  history.scrollRestoration = passage ? "manual" : "auto";
  if (UNFINISHED.includes(version.state)) setTimeout(follow, POLL_MS);
  if (shown.kind === "image" || (shown.kind === "pdf" && version.num_chars)) showPictures();
  else if (version.num_chars) await showText(passage?.start ?? 0);
  else return;
  offerPages();
  toPassage.hidden = !passage;
  await goToPassage();
}

start();
