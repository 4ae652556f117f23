// @ts-check
/**
 * <search-palette>, loaded when it is first opened: recent chats first, then what is found as one types, and names
 * for a filter that is half written. A combobox: the focus stays in the box, arrows walk the list, Enter takes a
 * name, or opens a chat at the message: of what is found for the words in the box, also where that is still on its
 * way. What the server found is put in as text, never as HTML.
 * Event: "open" {conversation, message, url, text}.
 */

import { element, find, icon, isComposing, setText } from "./dom.js";
import { gettext, ngettext } from "./i18n.js";
import { nameAt, namesFor, withName } from "./search-names.js";
import { count, dayGroup, shortDate } from "./words.js";

const WAIT_MS = 140;
const NEAR_END_PX = 300;

/**
 * @typedef {import("./conversation-store.js").Conversation} Conversation
 * @typedef {[string, boolean][]} Pieces text, and whether it was looked for
 * @typedef {{conversation: Conversation, message: string | null, url: string, role: string | null,
 *   title: Pieces, snippet: Pieces, written_at: string, num_matches: number, cosine: number | null}} Hit
 *   `cosine` is null where words have found it
 */

export class SearchPalette extends HTMLElement {
  /** @type {HTMLInputElement} */
  input = find(this, "input");
  /** @type {HTMLElement} */
  list = find(this, "[role=listbox]");
  /** @type {HTMLDialogElement} */
  dialog = /** @type {HTMLDialogElement} */ (this.closest("dialog"));
  api = /** @type {import("./api.js").Api} */ (/** @type {unknown} */ (null));

  #body = find(this, ".palette__body");
  #state = find(this, ".palette__state");
  #problem = find(this, ".palette__problem");
  /** @type {Hit[]} */
  #hits = [];
  /** In front of them, for the filter at the caret. @type {string[]} */
  #names = [];
  /** What there is, read once for each time that the search is open. @type {Partial<Record<"tag" | "folder", Promise<string[]>>>} */
  #known = {};
  #active = -1;
  /** The list is of other words than those in the box, and has not been walked since. */
  #isStale = false;
  /** Enter was pressed before the answer came. @type {{isElsewhere: boolean} | null} */
  #entered = null;
  #timer = 0;
  #asked = new AbortController();
  /** @type {string | null} */
  #next = null;
  #isLoadingMore = false;

  connectedCallback() {
    this.input.addEventListener("input", () => this.#typed());
    this.input.addEventListener("keydown", (event) => this.#keyPressed(event));
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.list.addEventListener("mousemove", (event) => this.#pointed(event));
    this.#body.addEventListener("scroll", () => this.#loadMoreNearEnd());
    this.addEventListener("click", (event) => this.#buttonClicked(event));
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.close());
    this.dialog.addEventListener("close", () => this.#drop());
  }

  /**
   * Its dialog is open: find what stands in the box.
   * @param {import("./api.js").Api} api
   */
  search(api) {
    this.api = api;
    this.#known = {};
    this.#search();
  }

  close() {
    this.dialog.close();
  }

  // --- asking ------------------------------------------------------------------------------

  /** Whatever was asked, or wished of the answer, is no longer wanted. */
  #drop() {
    clearTimeout(this.#timer);
    this.#asked.abort();
    this.#entered = null;
  }

  #typed() {
    this.#drop();
    this.#isStale = true;
    this.#timer = window.setTimeout(() => this.#search(), WAIT_MS);
  }

  async #search() {
    clearTimeout(this.#timer);
    this.#asked.abort();
    this.#isStale = true;
    const asked = (this.#asked = new AbortController());
    const text = this.input.value.trim();
    this.#sayLoading();
    try {
      const [found, names] = await Promise.all([this.#page(text, null, asked.signal), this.#namesHere()]);
      if (asked.signal.aborted) return;
      this.#names = names;
      this.#hits = found.items;
      this.#next = found.next;
      this.#body.scrollTop = 0;
      this.#show(text, found.problems ?? []);
    } catch (error) {
      if (!asked.signal.aborted) this.#fail(/** @type {Error} */ (error).message);
    }
  }

  /**
   * @param {string} text
   * @param {string | null} cursor
   * @param {AbortSignal} signal
   * @returns {Promise<{items: Hit[], next: string | null, problems?: string[]}>}
   */
  async #page(text, cursor, signal) {
    if (text) return this.api.search({ text, cursor, signal });
    const { items, next } = await this.api.conversations({ cursor, archived: false, signal });
    return { items: items.map(asHit), next };
  }

  /** Names for the filter that is being written. @returns {Promise<string[]>} */
  async #namesHere() {
    const at = nameAt(this.input.value, this.input.selectionEnd ?? 0);
    if (!at) return [];
    const read = { tag: () => this.api.tags(), folder: () => this.api.folderNames() }[at.filter];
    const known = (this.#known[at.filter] ??= read());
    return known.then((names) => namesFor(names, at.query), () => {
      delete this.#known[at.filter];
      return []; // a help that is not there today
    });
  }

  async #loadMoreNearEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#body;
    const isFar = scrollHeight - scrollTop - clientHeight > NEAR_END_PX;
    if (isFar || this.#next === null || this.#isLoadingMore) return;
    this.#isLoadingMore = true;
    const { signal } = this.#asked;
    try {
      const { items, next } = await this.#page(this.input.value.trim(), this.#next, signal);
      if (!signal.aborted) this.#append(items, next);
    } catch {
      if (!signal.aborted) this.#next = null; // what is there stays; a new search asks again
    }
    this.#isLoadingMore = false;
  }

  // --- showing -----------------------------------------------------------------------------

  #sayLoading() {
    this.setAttribute("aria-busy", "true");
    if (this.#hits.length) return;
    this.#say(gettext("Searching"));
    this.#tell(""); // so that what comes to nothing once more is said once more
  }

  /**
   * @param {string} text
   * @param {string[]} problems
   */
  #show(text, problems) {
    this.removeAttribute("aria-busy");
    this.#isStale = false;
    this.#problem.hidden = !problems.length;
    setText(this.#problem, problems.join(" "));
    this.list.setAttribute("aria-label", text ? gettext("Chats that were found") : gettext("Recent chats"));
    const sign = nameAt(this.input.value, this.input.selectionEnd ?? 0)?.filter === "folder" ? "folder" : "tags";
    this.list.replaceChildren(...this.#names.map((name, index) => nameOption(name, index, sign)));
    this.#append(this.#hits.splice(0), this.#next);
    this.#activate(this.#options.length ? 0 : -1);
    const nothing = this.#options.length ? [] : nothingWords(text, problems);
    this.#say(...nothing);
    const number = this.#hits.length;
    const words = this.#next
      ? ngettext("%(n)s or more chats found", "%(n)s or more chats found", number)
      : ngettext("%(n)s chat found", "%(n)s chats found", number);
    this.#tell(...problems, ...(text && number ? [words] : nothing));
    const entered = this.#entered;
    this.#entered = null;
    if (entered) this.#open(0, entered.isElsewhere);
  }

  /**
   * @param {Hit[]} hits
   * @param {string | null} next
   */
  #append(hits, next) {
    const listed = new Set(this.#hits.map(({ conversation }) => conversation.id));
    for (const hit of hits.filter(({ conversation }) => !listed.has(conversation.id))) {
      const before = this.#hits.at(-1);
      const isRecent = hit.written_at === "";
      const group = isRecent ? dayGroup(hit.conversation.updated_at) : "";
      if (isRecent && group !== (before && dayGroup(before.conversation.updated_at))) {
        this.list.append(element("li", { class: "palette__group", role: "presentation" }, [group]));
      }
      this.list.append(option(hit, this.#hits.length));
      this.#hits.push(hit);
    }
    this.#next = next;
  }

  /** @param {string} words */
  #fail(words) {
    this.removeAttribute("aria-busy");
    this.#isStale = false;
    this.#entered = null;
    this.#hits = [];
    this.#names = [];
    this.#next = null;
    this.list.replaceChildren();
    this.#activate(-1);
    this.#say(words);
    this.#tell(words);
    const again = element("button", { type: "button", class: "button", "data-again": "" }, [gettext("Try again")]);
    this.#state.append(again);
  }

  /** @param {...string} lines */
  #say(...lines) {
    this.#state.replaceChildren(...lines.filter(Boolean).map((line) => element("p", {}, [line])));
    this.input.setAttribute("aria-expanded", String(this.#options.length > 0));
  }

  /** To who listens, and does not see the list. @param {...string} lines */
  #tell(...lines) {
    setText(find(this, "[data-count]"), lines.join(" "));
  }

  /** @param {number} index */
  #activate(index) {
    this.#options[this.#active]?.setAttribute("aria-selected", "false");
    this.#active = index;
    const option = this.#options[index];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  get #options() {
    return /** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll("[role=option]"));
  }

  // --- keys and clicks ---------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (isComposing(event)) return;
    const last = this.#options.length - 1;
    const to = { ArrowDown: this.#active + 1, ArrowUp: this.#active - 1, PageDown: this.#active + 8,
      PageUp: this.#active - 8 }[event.key];
    if (to !== undefined && last >= 0) {
      event.preventDefault();
      this.#isStale = false; // who walks the list means what it shows
      const isStep = event.key.startsWith("Arrow");
      if (isStep && this.#next === null) this.#activate((to + last + 1) % (last + 1));
      else this.#activate(Math.max(0, Math.min(last, to)));
      this.#loadMoreNearEnd();
    }
    if (event.key === "Enter") {
      event.preventDefault();
      const isElsewhere = event.ctrlKey || event.metaKey;
      if (!this.#isStale) this.#open(this.#active, isElsewhere);
      else if (!event.repeat) this.#entered = { isElsewhere }; // a key held down has just taken a name
    }
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const index = [...this.#options].indexOf(/** @type {any} */ (optionAt(event)));
    this.#open(index, event.ctrlKey || event.metaKey);
  }

  /** @param {MouseEvent} event */
  #pointed(event) {
    const index = [...this.#options].indexOf(/** @type {any} */ (optionAt(event)));
    if (index >= 0 && index !== this.#active) this.#activate(index);
  }

  /** @param {Event} event */
  #buttonClicked(event) {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (!button) return;
    if ("close" in button.dataset) this.close();
    if ("again" in button.dataset) this.#search();
    const { filter } = button.dataset;
    if (!filter) return;
    const typed = this.input.value.trimEnd();
    this.input.value = typed ? `${typed} ${filter}` : filter;
    this.input.focus();
    this.#typed();
  }

  /**
   * @param {number} index
   * @param {boolean} isElsewhere in another tab
   */
  #open(index, isElsewhere) {
    const name = this.#names[index];
    if (name !== undefined) return this.#take(name);
    const hit = this.#hits[index - this.#names.length];
    if (!hit) return;
    if (isElsewhere) {
      window.open(hit.url, "_blank", "noopener");
      return;
    }
    this.close();
    const { conversation, message, url } = hit;
    this.dispatchEvent(new CustomEvent("open", { detail: { conversation, message, url, text: this.input.value } }));
  }

  /** @param {string} name */
  #take(name) {
    const at = nameAt(this.input.value, this.input.selectionEnd ?? 0);
    if (!at) return;
    const { text, caret } = withName(this.input.value, at, name);
    this.input.value = text;
    this.input.setSelectionRange(caret, caret);
    this.input.focus();
    this.#search();
  }
}

/**
 * @param {string} text
 * @param {string[]} problems
 */
function nothingWords(text, problems) {
  if (!text) return [gettext("Your chats will be found here.")];
  if (problems.length) return [gettext("Nothing was found.")];
  return [gettext("Nothing was found for “%(text)s”.", { text }), gettext("Fewer or shorter words find more.")];
}

/**
 * @param {string} name
 * @param {number} index
 * @param {string} sign its icon
 */
function nameOption(name, index, sign) {
  const words = element("span", { class: "palette__words" }, [element("span", { class: "palette__title", dir: "auto" }, [name])]);
  const attributes = { class: "palette__hit", role: "option", id: `palette-name-${index}`, "aria-selected": "false" };
  return element("li", attributes, [icon(sign), words]);
}

/** @param {Conversation} conversation */
function asHit(conversation) {
  /** @type {Hit} */
  const hit = {
    conversation, message: null, url: conversation.url, role: null,
    title: [[conversation.title, false]], snippet: [], written_at: "", num_matches: 0, cosine: null,
  };
  return hit;
}

/**
 * @param {Hit} hit
 * @param {number} index
 */
function option({ conversation, role, title, snippet, written_at, num_matches, cosine }, index) {
  const { pinned, archived } = conversation;
  const name = title.some(([text]) => text) ? pieces(title) : [gettext("New chat")];
  const head = element("span", { class: "palette__title", dir: "auto" }, name);
  const marks = [pinned && gettext("Pinned"), archived && gettext("Archived"), num_matches > 1 && count(num_matches, "message")];
  if (cosine !== null) marks.unshift(gettext("By meaning"));
  if (written_at) marks.push(shortDate(written_at));
  const meta = element("span", { class: "palette__meta numbers" }, [marks.filter(Boolean).join(" · ")]);
  const rows = [element("span", { class: "palette__head" }, [head, meta])];
  if (snippet.length) {
    const who = role === "user" ? `${gettext("You:")} ` : "";
    rows.push(element("span", { class: "palette__snippet", dir: "auto" }, [who, ...pieces(snippet)]));
  }
  const attributes = { role: "option", id: `palette-${index}`, "aria-selected": "false" };
  return element("li", { ...attributes, class: "palette__hit" }, [
    icon("message-square"), element("span", { class: "palette__words" }, rows),
  ]);
}

/** @param {Pieces} parts */
function pieces(parts) {
  return parts.map(([text, isHit]) => (isHit ? element("mark", {}, [text]) : text));
}

/** @param {Event} event */
function optionAt(event) {
  return /** @type {Element} */ (event.target).closest("[role=option]");
}

customElements.define("search-palette", SearchPalette);
