// @ts-check
/** What the settings keep of chats: export, import, links, deletion of everything, and the archive. */

import { Api } from "./api.js";
import { ArchivedChats } from "./archived-chats.js";
import { download, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";
import { ImportPanel } from "./import-panel.js";
import { chats } from "./import-words.js";
import { forgetChats } from "./kept-chats.js";
import { ShareList } from "./share-list.js";
import { ToastRegion } from "./toast.js";
import { thousands } from "./words.js";

const section = find(document, "#data");
const api = new Api(section.dataset.csrf ?? "");
const news = find(section, ".data__news");

/** @param {string} words */
function say(words) {
  setText(news, words);
}

/** @param {() => unknown} work */
async function attempt(work) {
  try {
    await work();
  } catch (error) {
    say(/** @type {Error} */ (error).message);
  }
}

// --- export ------------------------------------------------------------------------------------

const exporting = find(section, "[data-export]");
for (const button of exporting.querySelectorAll("[data-format]")) {
  button.addEventListener("click", () => exportAll(button.dataset.format ?? "json"));
}

/** @param {string} format */
function exportAll(format) {
  const id = newId();
  const box = find(exporting, ".data__progress");
  const bar = find(box, "progress");
  const words = find(box, "[role=status]");
  box.hidden = false;
  bar.value = 0;
  setText(words, gettext("Beginning"));
  download(`/api/export?format=${format}&progress=${id}`);
  const events = new EventSource(`/api/export/progress/${id}`);
  events.addEventListener("message", ({ data }) => {
    const { done, total, is_over, has_failed } = JSON.parse(data);
    bar.value = is_over && !has_failed ? 1 : total && done / total;
    setText(words, exportWords(done, total, is_over, has_failed));
    if (is_over) events.close();
  });
}

/**
 * @param {number} done
 * @param {number} total
 * @param {boolean} isOver
 * @param {boolean} [hasFailed]
 */
function exportWords(done, total, isOver, hasFailed) {
  if (hasFailed) return gettext("The export ended early; the file is not whole. Please try again.");
  if (isOver) return gettext("%(chats)s exported.", { chats: chats(done) });
  return total ? gettext("%(done)s of %(chats)s", { done: thousands(done), chats: chats(total) }) : gettext("Beginning");
}

// --- import ------------------------------------------------------------------------------------

const importing = new ImportPanel(find(section, "[data-import]"), api);
attempt(() => importing.resume());

// --- links -------------------------------------------------------------------------------------

const sharing = find(section, "[data-shares]");
const shares = new ShareList(find(sharing, "ul"), api);
const revokeAll = find(sharing, "[data-revoke-all]");
shares.addEventListener("changed", () => {
  revokeAll.hidden = shares.isEmpty;
  find(sharing, "[data-no-shares]").hidden = !shares.isEmpty;
});
shares.addEventListener("say", (event) => say(/** @type {CustomEvent} */ (event).detail));
revokeAll.addEventListener("click", () =>
  attempt(async () => {
    await api.revokeAllShares();
    shares.clear();
    say(gettext("All links are revoked. They open nothing any more."));
  }),
);
attempt(() => shares.load());

// --- deletion ----------------------------------------------------------------------------------

const dialog = find(document, "#delete-all");
const form = find(dialog, "form");
const input = find(form, "input");
const button = find(form, "button:not([type])");
let isDeleting = false;

find(section, "[data-delete-all] button").addEventListener("click", () => {
  input.value = "";
  button.disabled = true;
  setText(find(form, "[role=status]"), "");
  dialog.showModal();
});
find(form, "[data-close]").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => (isDeleting = false));
input.addEventListener("input", () => (button.disabled = !isConfirmed()));
form.addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  if (isConfirmed() && !isDeleting) deleteAll();
});

function isConfirmed() {
  return input.value.trim().toLowerCase() === input.dataset.words;
}

async function deleteAll() {
  isDeleting = button.disabled = true;
  let numDeleted = 0;
  try {
    while (isDeleting) {
      const { deleted, remaining } = await api.deleteSome(input.dataset.words ?? "");
      numDeleted += deleted;
      setText(find(form, "[role=status]"), gettext("%(chats)s deleted, %(n)s to go", { chats: chats(numDeleted), n: thousands(remaining) }));
      if (!remaining || !deleted) break;
    }
    say(gettext("%(chats)s deleted.", { chats: chats(numDeleted) }));
    archived.clear();
    await forgetChats();
    await shares.load();
    dialog.close();
  } catch (error) {
    setText(find(form, "[role=status]"), /** @type {Error} */ (error).message);
    button.disabled = false;
    isDeleting = false;
  }
}

// --- archive -----------------------------------------------------------------------------------

const archived = /** @type {ArchivedChats} */ (find(document, "archived-chats"));
const toasts = /** @type {ToastRegion} */ (find(document, "toast-region"));
archived.addEventListener("problem", (event) => toasts.show(/** @type {CustomEvent} */ (event).detail));
archived.addEventListener("done", (event) => {
  const { text, undo } = /** @type {CustomEvent} */ (event).detail;
  toasts.show(text, { action: gettext("Undo"), run: undo, shownMs: 10_000 });
});
archived.show(api);
