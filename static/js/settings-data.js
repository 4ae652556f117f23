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

/** @param {ParentNode} root that has the section, and a place for toasts */
export function showData(root) {
  const section = find(root, "#data");
  const api = new Api(section.dataset.csrf ?? "");
  const news = find(section, ".data__news");
  const say = (/** @type {string} */ words) => setText(news, words);
  showExport(find(section, "[data-export]"));
  const importing = new ImportPanel(find(section, "[data-import]"), api);
  attempt(() => importing.resume(), say);
  const shares = showShares(find(section, "[data-shares]"), api, say);
  const archived = showArchive(root, api);
  new Deletion(root, api, async (words) => {
    say(words);
    archived.clear();
    await forgetChats();
    await shares.load();
  });
}

/**
 * @param {() => unknown} work
 * @param {(words: string) => void} say
 */
async function attempt(work, say) {
  try {
    await work();
  } catch (error) {
    say(/** @type {Error} */ (error).message);
  }
}

// --- export ------------------------------------------------------------------------------------

/** @param {HTMLElement} root */
function showExport(root) {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-format]"))) {
    button.addEventListener("click", () => exportAll(root, button.dataset.format ?? "json"));
  }
}

/**
 * @param {HTMLElement} root
 * @param {string} format
 */
function exportAll(root, format) {
  const id = newId();
  const box = find(root, ".data__progress");
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

// --- links -------------------------------------------------------------------------------------

/**
 * @param {HTMLElement} root
 * @param {Api} api
 * @param {(words: string) => void} say
 */
function showShares(root, api, say) {
  const shares = new ShareList(find(root, "ul"), api);
  const revokeAll = find(root, "[data-revoke-all]");
  shares.addEventListener("changed", () => {
    revokeAll.hidden = shares.isEmpty;
    find(root, "[data-no-shares]").hidden = !shares.isEmpty;
  });
  shares.addEventListener("say", (event) => say(/** @type {CustomEvent} */ (event).detail));
  const revoke = async () => {
    await api.revokeAllShares();
    shares.clear();
    say(gettext("All links are revoked. They open nothing any more."));
  };
  revokeAll.addEventListener("click", () => attempt(revoke, say));
  attempt(() => shares.load(), say);
  return shares;
}

// --- archive -----------------------------------------------------------------------------------

/**
 * @param {ParentNode} root
 * @param {Api} api
 */
function showArchive(root, api) {
  const archived = /** @type {ArchivedChats} */ (find(root, "archived-chats"));
  const toasts = /** @type {ToastRegion} */ (find(root, "toast-region"));
  archived.addEventListener("problem", (event) => toasts.show(/** @type {CustomEvent} */ (event).detail));
  archived.addEventListener("done", (event) => {
    const { text, undo } = /** @type {CustomEvent} */ (event).detail;
    toasts.show(text, { action: gettext("Undo"), run: undo, shownMs: 10_000 });
  });
  archived.show(api);
  return archived;
}

// --- deletion ----------------------------------------------------------------------------------

class Deletion {
  #isDeleting = false;

  /**
   * @param {ParentNode} root
   * @param {Api} api
   * @param {(words: string) => Promise<void>} deleted
   */
  constructor(root, api, deleted) {
    this.api = api;
    this.deleted = deleted;
    this.dialog = find(root, "#delete-all");
    this.form = find(this.dialog, "form");
    this.input = find(this.form, "input");
    this.button = find(this.form, "button:not([type])");
    this.status = find(this.form, "[role=status]");
    find(root, "[data-delete-all] button").addEventListener("click", () => this.#open());
    find(this.form, "[data-close]").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => (this.#isDeleting = false));
    this.input.addEventListener("input", () => (this.button.disabled = !this.#isConfirmed));
    this.form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.#isConfirmed && !this.#isDeleting) this.#deleteAll();
    });
  }

  get #isConfirmed() {
    return this.input.value.trim().toLowerCase() === this.input.dataset.words;
  }

  #open() {
    this.input.value = "";
    this.button.disabled = true;
    setText(this.status, "");
    this.dialog.showModal();
  }

  async #deleteAll() {
    this.#isDeleting = this.button.disabled = true;
    try {
      await this.deleted(gettext("%(chats)s deleted.", { chats: chats(await this.#deleteSome()) }));
      this.dialog.close();
    } catch (error) {
      setText(this.status, /** @type {Error} */ (error).message);
      this.button.disabled = false;
      this.#isDeleting = false;
    }
  }

  /** Until none is left, or the dialog is closed; how many were deleted. */
  async #deleteSome() {
    let numDeleted = 0;
    while (this.#isDeleting) {
      const { deleted, remaining } = await this.api.deleteSome(this.input.dataset.words ?? "");
      numDeleted += deleted;
      setText(this.status, gettext("%(chats)s deleted, %(n)s to go", { chats: chats(numDeleted), n: thousands(remaining) }));
      if (!remaining || !deleted) break;
    }
    return numDeleted;
  }
}
