// @ts-check
/**
 * What people change about a message: its text, what they think of it, whether the model is shown it, whether
 * it is there. Loaded with the first of them; message-actions.js has what a chat needs from its beginning.
 */

import { choiceOf } from "./dialog.js";
import { find } from "./dom.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";
import { edited } from "./message-editor.js";
import { textOf } from "./parts.js";
import { TemporaryTree } from "./temporary-tree.js";

const UNDO_MS = 10_000;
const MAX_MEMORY_CHARS = 500;

export class MessageChanges {
  #temporaryTree = new TemporaryTree(() => this.actions.store);

  /** @param {import("./message-actions.js").MessageActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.page = actions.page;
  }

  /** Where the tree is changed: on the server, or in this page. */
  get #tree() {
    return this.actions.store.isTemporary ? this.#temporaryTree : this.page.api;
  }

  /**
   * Show a message to the model however long the chat gets, or no longer.
   * @param {string} id
   */
  async pin(id) {
    const { session, api } = this.page;
    const store = this.actions.store;
    const message = store.shown(id);
    if (!message) return;
    await this.actions.attempt(async () => {
      const is_pinned = !message.is_pinned;
      await api.pin(id, is_pinned);
      session.take({ conversation: store.conversation, message: { ...message, is_pinned } });
    });
    this.actions.focus(id, "more");
  }

  /** Chats that begin from now on know what a message of one's own says. @param {string} id */
  async remember(id) {
    const { store, page } = this.actions;
    const text = textOf(store.shown(id)?.parts ?? []).trim();
    const undo = { action: gettext("Undo"), shownMs: UNDO_MS };
    await this.actions.attempt(async () => {
      if ([...text].length > MAX_MEMORY_CHARS) {
        throw new Error(gettext("This message is longer than %(n)s characters, too long to be remembered. Write what matters in the settings, under Memory.", { n: MAX_MEMORY_CHARS }));
      }
      const memory = await page.api.memory("POST", "", { text, conversation: store.conversation?.id });
      if (!memory.is_new) page.toasts.show(gettext("This is remembered already."));
      else page.toasts.show(gettext("Remembered for the chats that you begin from now on."), { ...undo, run: () => page.api.memory("DELETE", memory.id) });
    });
    this.actions.focus(id, "more");
  }

  /** Take back what an answer has remembered. @param {HTMLElement} button */
  async forget(button) {
    const { forgetRemembered } = await import("./remembered.js");
    await this.actions.attempt(() => forgetRemembered(button, this.page.api));
  }

  /** The same again takes it back. @param {string} id @param {"good" | "bad"} rating */
  async rate(id, rating) {
    const before = this.actions.store.shown(id)?.feedback ?? null;
    const isBack = before?.rating === rating;
    await this.actions.attempt(() => this.#keepRating(id, isBack ? null : { rating, reasons: [], comment: "" }));
    if (rating === "bad" && !isBack) {
      const { askWhatIsWrong } = await import("./feedback.js");
      await askWhatIsWrong((said) => this.#keepRating(id, said));
    }
    this.actions.focus(id, rating);
  }

  /**
   * @param {string} id
   * @param {import("./feedback.js").Feedback | null} feedback
   */
  async #keepRating(id, feedback) {
    const { session, api } = this.page;
    const store = this.actions.store;
    await api.rate(id, feedback);
    const message = store.shown(id);
    if (message) session.take({ conversation: store.conversation, message: { ...message, feedback } });
  }

  // --- other texts -------------------------------------------------------------------------

  /**
   * What was being written in the place of messages when the chat was left, or the page.
   * @param {Record<string, string>} editing message → text
   * @param {boolean} isQuiet the focus stays where it is
   */
  reopen(editing, isQuiet) {
    const { store, page } = this.actions;
    const isOffered = !isQuiet && matchMedia("(any-pointer: fine)").matches; // else a keyboard of glass comes up
    for (const [id, text] of Object.entries(editing)) {
      if (store.pathIds.includes(id)) this.edit(id, text, !isOffered);
      else if (!store.messages.has(id)) page.drafts.edit(store.draftName, id, null); // it is gone
    }
  }

  /**
   * @param {string} id
   * @param {string} [typed] what is not saved yet
   * @param {boolean} [isQuiet]
   */
  async edit(id, typed, isQuiet) {
    const { list, session, drafts } = this.page;
    const { store } = this.actions;
    const root = list.rootOf(id);
    const message = store.shown(id);
    if (!root || !message) return;
    store.hold(id);
    if (root.hasAttribute("data-editing")) return; // its chat was opened anew around it
    const isQuestion = message.role === "user";
    const before = textOf(message.parts);
    const isShown = () => this.actions.store.shown(id) !== null;
    const keep = (/** @type {string} */ written) => {
      if (isShown() || !store.isTemporary) drafts.edit(store.draftName, id, written === before ? null : written);
    };
    const text = await edited({
      root,
      text: before,
      typed,
      keep,
      isQuiet,
      label: isQuestion ? gettext("Your message") : gettext("The answer"),
      save: isQuestion ? gettext("Send") : gettext("Save"),
      about: isQuestion ? gettext("It is asked anew; this version stays.") : gettext("It is kept as another version."),
    });
    keep(text ?? before); // an answer is not saved yet
    this.actions.store.hold(null);
    if (isShown()) session.emit("path"); // another tab may have chosen meanwhile
    if (text === null || !isShown()) return this.actions.focus(id, "edit");
    if (isQuestion) {
      const { model, withNewTurn } = this.page;
      const sent = { text, clientId: newId(), parent: message.parent, edits: id, sources: message.sources ?? undefined };
      drafts.addSent(store.draftName, sent);
      keep(before);
      withNewTurn(() => session.send({ ...sent, model: model() }));
      this.page.focusComposer();
    } else await this.#saveAnswer(id, text);
  }

  /**
   * Where that fails, its writer goes on with it.
   * @param {string} id
   * @param {string} text
   */
  async #saveAnswer(id, text) {
    const { session, drafts } = this.page;
    const { store } = this.actions;
    const isSaved = await this.actions.attempt(async () => {
      const changed = await this.#tree.editAnswer(id, text, newId());
      drafts.edit(store.draftName, id, null);
      this.actions.around(id, () => session.take(changed), () => changed.message.id);
      this.actions.focus(changed.message.id, "edit");
    }, text);
    if (!isSaved && store === this.actions.store) await this.edit(id, text);
  }

  // --- branch, delete ----------------------------------------------------------------------

  /** A link to the chat as far as an answer. @param {string} id */
  async share(id) {
    const { store, page } = this.actions;
    await this.actions.attempt(async () => {
      const { openShareDialog } = await import("./share-dialog.js");
      await openShareDialog(page.api, store.conversation?.id ?? "", store.path(), id);
    });
  }

  /** @param {string} id */
  async branch(id) {
    const { api, goTo } = this.page;
    await this.actions.attempt(async () => goTo((await api.branch(id, newId())).conversation));
  }

  /** @param {string} id */
  async remove(id) {
    const store = this.actions.store;
    const message = store.shown(id);
    if (!message) return;
    let withReplies = true;
    if (store.hasReplies(id)) {
      const choice = await choiceOf(find(document, "#delete-message"));
      if (!choice) return this.actions.focus(id, "more");
      withReplies = choice === "all";
    }
    const { session, toasts } = this.page;
    const deletion = newId();
    await this.actions.attempt(async () => {
      const version = store.version;
      const changed = await this.#tree.deleteMessage(id, { deletion, replies: withReplies, version });
      this.actions.around(message.parent ?? id, () => session.take(changed), () => message.parent ?? id);
      this.page.focusComposer();
      const undo = () => this.#restore(store, deletion);
      toasts.show(gettext("The message is deleted."), { action: gettext("Undo"), run: undo, shownMs: UNDO_MS });
    });
  }

  /**
   * @param {import("./conversation-store.js").ConversationStore} store
   * @param {string} deletion
   */
  async #restore(store, deletion) {
    const { api, session } = this.page;
    const tree = store.isTemporary ? this.#temporaryTree : api;
    if (store.isTemporary && store !== this.actions.store) return; // that chat is gone
    const id = /** @type {any} */ (store.conversation?.id ?? null);
    await this.actions.inTurn(async () => session.take(await tree.restore(id, deletion)));
  }
}
