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

const UNDO_MS = 10_000;

export class MessageChanges {
  /** @param {import("./message-actions.js").MessageActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.page = actions.page;
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
   * @param {string} id
   * @param {string} [typed] what could not be saved before
   */
  async edit(id, typed) {
    const { list, session } = this.page;
    const root = list.rootOf(id);
    const message = this.actions.store.shown(id);
    if (!root || !message || root.hasAttribute("data-editing")) return;
    const isQuestion = message.role === "user";
    const store = this.actions.store;
    store.hold(id);
    const text = await edited({
      root,
      text: textOf(message.parts),
      typed,
      label: isQuestion ? gettext("Your message") : gettext("The answer"),
      save: isQuestion ? gettext("Send") : gettext("Save"),
      about: isQuestion ? gettext("It is asked anew; this version stays.") : gettext("It is kept as another version."),
    });
    store.hold(null);
    if (store === this.actions.store) session.emit("path"); // another tab may have chosen meanwhile
    if (text === null || store !== this.actions.store) return this.actions.focus(id, "edit");
    if (isQuestion) {
      const { model, keepSent, withNewTurn } = this.page;
      const sent = { text, clientId: newId(), parent: message.parent, sources: message.sources ?? undefined };
      keepSent(sent);
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
    const { session } = this.page;
    const store = this.actions.store;
    const isSaved = await this.actions.attempt(async () => {
      const changed = await this.actions.tree.editAnswer(id, text, newId());
      this.actions.around(id, () => session.take(changed), () => changed.message.id);
      this.actions.focus(changed.message.id, "edit");
    }, text);
    if (!isSaved && store === this.actions.store) await this.edit(id, text);
  }

  // --- branch, delete ----------------------------------------------------------------------

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
      const changed = await this.actions.tree.deleteMessage(id, { deletion, replies: withReplies, version });
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
    const tree = store.isTemporary ? this.temporaryTree : api;
    if (store.isTemporary && store !== this.actions.store) return; // that chat is gone
    const id = /** @type {any} */ (store.conversation?.id ?? null);
    await this.actions.attempt(async () => session.take(await tree.restore(id, deletion)));
  }
}
