// @ts-check
/**
 * <chat-composer>: writing and sending. Enter sends unless the reader chose otherwise, is composing
 * characters or types on glass. What is written is kept per chat until the server has it, together
 * with its client id: sent again after a reload it is still one message.
 * Events: "send" {text, clientId}, "stop".
 */

import { find, setText } from "./dom.js";
import { newId } from "./ids.js";
import { preference, remember } from "./preferences.js";

/** @typedef {`draft.${string}`} DraftName */

const SAVE_AFTER_MS = 300;
const NO_DRAFT = { text: "", clientId: "" };

export class ChatComposer extends HTMLElement {
  /** @type {HTMLTextAreaElement} */
  input = find(this, "textarea");
  /** @type {HTMLFormElement} */
  form = find(this, "form");
  /** @type {HTMLButtonElement} */
  button = find(this, ".composer__send");
  /** @type {HTMLElement} */
  hint = find(this, ".composer__hint");

  #isRunning = false;
  /** @type {DraftName | null} null until the first chat is opened */
  #draftName = null;
  /** What was sent from here and is not yet the server's. */
  #sent = NO_DRAFT;
  #saving = 0;
  #usualHint = this.hint.textContent ?? "";

  connectedCallback() {
    this.input.addEventListener("input", () => this.#changed());
    this.input.addEventListener("keydown", (event) => this.#keyPressed(event));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#isRunning) this.dispatchEvent(new CustomEvent("stop"));
      else this.#send();
    });
    addEventListener("pagehide", () => this.#save());
  }

  /**
   * Change to another chat's draft.
   * @param {string | null} conversation
   */
  open(conversation) {
    this.#save();
    this.#draftName = draftName(conversation);
    this.#sent = NO_DRAFT;
    this.input.value = readDraft(this.#draftName).text;
    this.#changed();
  }

  /** @param {boolean} isRunning an answer is being written: the button stops it */
  setRunning(isRunning) {
    if (isRunning === this.#isRunning) return; // it comes with each event; a hint may be on show
    this.#isRunning = isRunning;
    this.form.toggleAttribute("data-running", isRunning);
    this.#showState();
  }

  /**
   * The server has the message; what is typed from now on belongs to its conversation.
   * @param {{clientId: string, conversation: string, isHere: boolean}} accepted
   */
  accepted({ clientId, conversation, isHere }) {
    for (const name of [draftName(null), draftName(conversation)]) {
      if (readDraft(name).clientId === clientId) remember(name, null);
    }
    if (this.#sent.clientId === clientId) this.#sent = NO_DRAFT;
    if (isHere) this.#draftName = draftName(conversation);
    this.#save();
  }

  /**
   * The server did not take it: the text comes back, in front of what was typed since.
   * @param {string} text
   */
  rejected(text) {
    this.#sent = NO_DRAFT;
    this.fill(join(text, this.input.value));
  }

  /**
   * Put text into the box as if it was typed, so that undo brings back what was there.
   * @param {string} text
   */
  fill(text) {
    this.input.focus();
    this.input.select();
    if (!document.execCommand("insertText", false, text)) this.input.value = text;
    this.#changed();
  }

  focusInput() {
    this.input.focus({ preventScroll: true });
  }

  #send() {
    const text = this.input.value.trim();
    if (!text) return;
    const before = readDraft(this.#draftName ?? draftName(null));
    const clientId = before.text === text && before.clientId ? before.clientId : newId();
    this.#sent = { text, clientId };
    this.input.value = "";
    this.#changed();
    this.#save();
    this.dispatchEvent(new CustomEvent("send", { detail: { text, clientId } }));
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    if (event.isComposing || event.keyCode === 229) return; // 229: Safari ends composing first
    const needsModifier = preference("send-key") === "mod-enter" || hasVirtualKeyboard();
    if (needsModifier && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (this.#isRunning) this.#explainWait();
    else this.#send();
  }

  #explainWait() {
    setText(this.hint, "Stop the answer first, or wait for its end. Your text stays here.");
  }

  #changed() {
    this.#grow();
    this.#showState();
    clearTimeout(this.#saving);
    this.#saving = window.setTimeout(() => this.#save(), SAVE_AFTER_MS);
  }

  #save() {
    clearTimeout(this.#saving);
    if (!this.#draftName) return;
    const typed = this.input.value;
    if (this.#sent.text && !typed.trim()) writeDraft(this.#draftName, this.#sent);
    else writeDraft(this.#draftName, { text: join(this.#sent.text, typed), clientId: "" });
  }

  #showState() {
    const isEmpty = !this.input.value.trim();
    this.button.setAttribute("aria-disabled", String(!this.#isRunning && isEmpty));
    this.button.setAttribute("aria-label", this.#isRunning ? "Stop" : "Send");
    this.button.title = this.#isRunning ? "Stop (Esc)" : "Send";
    const canEscape = this.#isRunning && !hasVirtualKeyboard();
    setText(this.hint, canEscape ? "Esc stops the answer." : this.#usualHint);
  }

  /** Browsers without field-sizing need help to grow. */
  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.input.style.setProperty("block-size", "auto");
    this.input.style.setProperty("block-size", `${this.input.scrollHeight}px`);
  }
}

/**
 * @param {string | null} conversation
 * @returns {DraftName}
 */
function draftName(conversation) {
  return `draft.${conversation ?? "new"}`;
}

/** @param {DraftName} name */
function readDraft(name) {
  return { ...NO_DRAFT, ...JSON.parse(preference(name) ?? "{}") };
}

/**
 * @param {DraftName} name
 * @param {{text: string, clientId: string}} draft
 */
function writeDraft(name, draft) {
  remember(name, draft.text.trim() ? JSON.stringify(draft) : null);
}

/** @param {string[]} texts */
function join(...texts) {
  return texts.filter((text) => text.trim()).join("\n\n");
}

function hasVirtualKeyboard() {
  return matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
}

customElements.define("chat-composer", ChatComposer);
