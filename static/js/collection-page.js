// @ts-check
/** The page of a collection: its documents and how they stand, what is brought into it, who reads it. */

import { AccessDialog } from "./access-dialog.js";
import "./back-to-chat.js";
import { confirmed } from "./dialog.js";
import { DocumentApi } from "./document-api.js";
import { filesOf, filesOfInput } from "./document-files.js";
import { viewerUrl } from "./document-links.js";
import { DocumentRows } from "./document-rows.js";
import { Uploads } from "./document-uploads.js";
import { isUnfinished, stateOf, tagsOf } from "./document-words.js";
import { find, setText } from "./dom.js";
import { FormDialog } from "./form-dialog.js";
import { gettext, ngettext } from "./i18n.js";
import { Menu } from "./menu.js";
import { PassageSearch } from "./passage-search.js";
import { stateBox } from "./state-box.js";
import { followTheme } from "./theme.js";
import { ToastRegion } from "./toast.js";
import { UploadList } from "./upload-list.js";

/** @typedef {import("./document-api.js").Document} Document */

const TYPING_MS = 250;
const SILENT_MS = 3000;
const MAX_ASKED = 5;
const { csrf, collection } = JSON.parse(find(document, "#bootstrap").textContent);
const api = new DocumentApi(csrf);
const box = find(document, "[data-state-box]");
const more = find(document, "[data-more]");
const count = find(document, "[data-count]");
const voice = find(document, "[data-voice]");
const list = find(document, "[data-documents]");
const toasts = /** @type {ToastRegion} */ (find(document, "toast-region"));
const rows = new DocumentRows(list, collection.may_write);
const passages = new PassageSearch(find(document, "[data-passages]"), (query, signal) => api.search(query, collection.id, signal));

let query = "";
let asked = new AbortController();

/** @param {string} words */
function say(words) {
  setText(voice, words);
}

/** What fails is told. @param {() => Promise<unknown>} work */
async function attempt(work) {
  try {
    await work();
  } catch (error) {
    toasts.show(/** @type {Error} */ (error).message);
  }
}

// --- the list ----------------------------------------------------------------------------------

async function load() {
  asked.abort();
  const { signal } = (asked = new AbortController());
  list.setAttribute("aria-busy", "true");
  passages.show(query, signal);
  try {
    const page = await api.documents(collection.id, { q: query || undefined, signal });
    if (signal.aborted) return;
    rows.clear();
    take(page);
  } catch (error) {
    if (signal.aborted) return;
    rows.clear();
    stateBox(box, {
      icon: "circle-alert",
      title: gettext("The documents could not be loaded"),
      text: /** @type {Error} */ (error).message,
      action: { words: gettext("Try again"), run: load },
    });
  }
  list.removeAttribute("aria-busy");
}

/** @param {{documents: Document[], has_more: boolean}} page */
function take({ documents, has_more }) {
  rows.put(documents);
  more.hidden = !has_more;
  showWhatIsThere();
}

function showWhatIsThere() {
  setText(count, rows.size ? `${rows.size}${more.hidden ? "" : "+"}` : "");
  if (rows.size) return stateBox(box, null);
  if (query) return stateBox(box, { icon: "search", title: gettext("No document is called so"), text: gettext("Passages are searched as well, by what they say.") });
  const text = collection.may_write
    ? gettext("PDF, Word, PowerPoint, Excel, e-books, web pages, e-mail, pictures, text and code are read.")
    : gettext("Whoever may write here has not added anything yet.");
  stateBox(box, { icon: "file-text", title: gettext("Nothing in here yet"), text });
}

more.addEventListener("click", () => attempt(async () => take(await api.documents(collection.id, { q: query || undefined, after: rows.last }))));

const searching = find(document, "[data-search]");
let typing = 0;
searching.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, TYPING_MS);
});
searching.addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  search();
});

function search() {
  clearTimeout(typing);
  const words = searching.elements.q.value.trim();
  if (words === query) return;
  query = words;
  load();
}

// --- what goes on ------------------------------------------------------------------------------

const events = new EventSource(`/api/collections/${collection.id}/events`);
events.addEventListener("message", ({ data }) => {
  for (const document of JSON.parse(data).documents) follow(document);
});
addEventListener("pagehide", () => events.close());
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

// Events tell of what is on its way: what failed between two looks, or while the line was away, is asked for.
setInterval(() => {
  for (const { id } of rows.silent(SILENT_MS).slice(0, MAX_ASKED)) {
    api.document(id).then(follow, ({ status }) => status === 404 && leave(id));
  }
}, SILENT_MS);

/** It is gone. @param {string} id @param {boolean} [isWanted] by whoever sits here */
function leave(id, isWanted) {
  rows.drop(id, isWanted);
  showWhatIsThere();
}

/** @param {Document} document */
function follow(document) {
  const before = rows.document(document.id);
  if (before) rows.put([document]);
  else if (!query) {
    rows.put([document], "start");
    showWhatIsThere();
  }
  if (before && isUnfinished(before) && !isUnfinished(document)) {
    const { state, text } = stateOf(document);
    say(state === "ready" ? gettext("%(name)s is ready.", { name: document.name }) : `${document.name}: ${text}`);
  }
}

// --- one document ------------------------------------------------------------------------------

/** @type {Document | null} */
let chosen = null;
const menu = new Menu(find(document, "#document-menu"), (item) => act(item.dataset.do ?? ""));

rows.addEventListener("menu", (event) => {
  const { document: of, opener } = /** @type {CustomEvent} */ (event).detail;
  chosen = of;
  find(menu.root, "[data-do=open]").setAttribute("href", viewerUrl({ document: of.id }));
  find(menu.root, "[data-do=download]").setAttribute("href", `/api/documents/${of.id}/content`);
  offer("retry", of.version?.state === "failed");
  offer("refresh", Boolean(of.source_url));
  menu.open(opener);
});
rows.addEventListener("retry", (event) => retry(/** @type {CustomEvent} */ (event).detail));

/** @param {string} what @param {boolean} isPossible */
function offer(what, isPossible) {
  const item = /** @type {HTMLElement | null} */ (menu.root.querySelector(`[data-do=${what}]`));
  if (item) item.hidden = !isPossible;
}

/** @param {string} what */
function act(what) {
  const document = chosen;
  if (!document) return;
  if (what === "rename") rename(document);
  if (what === "replace") nextVersion?.click();
  if (what === "retry") retry(document);
  if (what === "refresh") refresh(document);
  if (what === "delete") remove(document);
}

/** @param {Document} document */
function retry(document) {
  attempt(async () => {
    rows.put([await api.retry(document.id)]);
    say(gettext("%(name)s is read again.", { name: document.name }));
  });
}

/** @param {Document} document */
function refresh(document) {
  say(gettext("%(name)s is fetched again.", { name: document.name }));
  attempt(async () => {
    const fetched = await api.refresh(document.id);
    rows.put([fetched]);
    const isSame = fetched.version?.id === document.version?.id;
    if (isSame) toasts.show(gettext("%(name)s has not changed since.", { name: document.name }));
  });
}

/** @param {Document} document */
async function remove(document) {
  const isSure = await confirmed({
    title: gettext("Delete this document?"),
    text: gettext("“%(name)s” goes with all its versions, and is not found any more. There is no undo.", { name: document.name }),
    action: gettext("Delete"),
  });
  if (!isSure) return;
  await attempt(async () => {
    await api.removeDocument(document.id);
    leave(document.id, true);
    say(gettext("%(name)s is deleted.", { name: document.name }));
  });
}

// --- what only some have: adding, renaming, sharing ----------------------------------------------

const nextVersion = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-next-version]"));
/** @type {(document: Document) => void} */
let rename = () => {};

if (collection.may_write) {
  const naming = new FormDialog(find(document, "#document-dialog"));
  rename = (of) =>
    naming.open({ name: of.name, tags: of.tags.join(", ") }, async ({ name, tags }) => {
      rows.put([await api.changeDocument(of.id, { name: name.value.trim(), tags: tagsOf(tags.value) })]);
    });

  const uploads = new Uploads(csrf, collection.id);
  new UploadList(find(document, "[data-uploads]"), uploads);
  uploads.addEventListener("sent", (event) => follow(/** @type {CustomEvent} */ (event).detail));
  uploads.addEventListener("changed", (event) => {
    const { state, file, problem } = /** @type {CustomEvent} */ (event).detail;
    if (state === "failed") say(`${file.name}: ${problem}`);
  });
  addEventListener("beforeunload", (event) => uploads.isBusy && event.preventDefault());

  /** @param {import("./document-files.js").Chosen[]} files */
  const add = (files) => {
    if (!files.length) return toasts.show(gettext("There are no files in it."));
    say(ngettext("%(n)s file is uploaded.", "%(n)s files are uploaded.", files.length));
    uploads.add(files);
  };

  for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("[data-files], [data-folder]"))) {
    input.addEventListener("change", () => {
      add(filesOfInput(input.files));
      input.value = "";
    });
  }
  nextVersion?.addEventListener("change", () => {
    if (chosen) uploads.add(filesOfInput(nextVersion.files), chosen.id);
    nextVersion.value = "";
  });
  listenForDrops(add);

  const linking = new FormDialog(find(document, "#link-dialog"));
  find(document, "[data-add-link]").addEventListener("click", () =>
    linking.open({ url: "" }, async ({ url }) => follow(await api.addLink(collection.id, url.value.trim()))),
  );
}

/** @param {(files: import("./document-files.js").Chosen[]) => void} add */
function listenForDrops(add) {
  const root = document.documentElement;
  let depth = 0;
  const holdsFiles = (/** @type {DragEvent} */ event) => Boolean(event.dataTransfer?.types.includes("Files"));
  const isBusy = () => document.querySelector("dialog[open]") !== null;
  addEventListener("dragenter", (event) => {
    if (!holdsFiles(event) || isBusy()) return;
    depth += 1;
    root.dataset.dragging = "";
  });
  addEventListener("dragleave", (event) => {
    if (holdsFiles(event) && (depth = Math.max(0, depth - 1)) === 0) delete root.dataset.dragging;
  });
  addEventListener("dragover", (event) => {
    if (holdsFiles(event)) event.preventDefault(); // else the browser would open the file
  });
  addEventListener("drop", async (event) => {
    if (!holdsFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    depth = 0;
    delete root.dataset.dragging;
    if (!isBusy()) add(await filesOf(event.dataTransfer));
  });
  addEventListener("paste", async (event) => {
    const { clipboardData, target } = event;
    const isTyping = target instanceof Element && target.matches("input, textarea");
    if (isBusy() || isTyping || !clipboardData?.files.length || isText(clipboardData)) return;
    event.preventDefault();
    add(await filesOf(clipboardData));
  });
}

/**
 * What is copied from a text processor is text, and a picture of it; with a file its name may come as text.
 * @param {DataTransfer} pasted
 */
function isText(pasted) {
  const text = pasted.getData("text/plain");
  return text !== "" && ![...pasted.files].some(({ name }) => text.includes(name));
}

if (collection.is_mine) {
  const naming = new FormDialog(find(document, "#collection-dialog"));
  const name = find(document, "[data-name]");
  const description = find(document, "[data-description]");
  find(document, "[data-edit]").addEventListener("click", () => {
    const values = { name: collection.name, description: collection.description, caches_answers: collection.caches_answers ? "yes" : "" };
    naming.open(values, async (fields) => {
      const given = {
        name: fields.name.value.trim(), description: fields.description.value.trim(),
        caches_answers: Boolean(fields.caches_answers.value),
      };
      Object.assign(collection, await api.changeCollection(collection.id, given));
      setText(name, collection.name);
      setText(description, collection.description);
      description.hidden = !collection.description;
      document.title = `${collection.name} · Vitrine`;
    }, gettext("Rename and describe"));
  });
  find(document, "[data-delete]").addEventListener("click", async () => {
    const isSure = await confirmed({
      title: gettext("Delete this collection?"),
      text: gettext("“%(name)s” goes with all its documents, for everybody who reads it. There is no undo.", { name: collection.name }),
      action: gettext("Delete"),
    });
    if (!isSure) return;
    await attempt(async () => {
      await api.removeCollection(collection.id);
      location.assign("/documents/");
    });
  });
  if (collection.may_be_shared) {
    const sharing = new AccessDialog(find(document, "#access-dialog"), api, collection.id);
    find(document, "[data-share]").addEventListener("click", () => sharing.open());
  }
}

followTheme();
load();
