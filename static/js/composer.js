// @ts-check
/**
 * <chat-composer>: writing and sending. Enter sends unless the reader chose otherwise, is composing
 * characters or types on glass. What is written is kept per chat until the server has it (drafts.js).
 * Events: "send" {text, clientId}, "stop".
 */

import { find, setText } from "./dom.js";
import { newId } from "./ids.js";
import { preference } from "./preferences.js";

const SAVE_AFTER_MS = 300;

export class ChatComposer extends HTMLElement {
  /** @type {HTMLTextAreaElement} */
  input = find(this, "textarea");
  /** @type {HTMLFormElement} */
  form = find(this, "form");
  /** @type {HTMLButtonElement} */
  button = find(this, ".composer__send");
  /** @type {HTMLElement} */
  hint = find(this, ".composer__hint");

  /** @type {import("./drafts.js").Drafts | null} set before the first chat is opened */
  drafts = null;

  #isRunning = false;
  /** @type {string | null | undefined} the chat that is written to; undefined: none is open yet */
  #conversation;
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
    this.#conversation = conversation;
    this.input.value = this.drafts?.of(conversation).typed ?? "";
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
    for (const place of [null, conversation]) this.drafts?.dropSent(place, clientId);
    if (!isHere) return;
    this.drafts?.type(null, "");
    this.#conversation = conversation;
    this.#save();
  }

  /**
   * The server did not take it: the text comes back, in front of what was typed since.
   * @param {{text: string, clientId: string, conversation: string | null}} rejected
   */
  rejected({ text, clientId, conversation }) {
    const wasKept = this.drafts?.dropSent(conversation, clientId);
    const typed = this.drafts?.of(conversation).typed ?? "";
    if (conversation === this.#conversation) this.fill(join(text, this.input.value));
    else if (wasKept) this.drafts?.type(conversation, join(text, typed));
  }

  /**
   * The chat is deleted, and with it what was written for it.
   * @param {string} conversation
   */
  forget(conversation) {
    if (conversation === this.#conversation) this.input.value = "";
    this.drafts?.forget(conversation);
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
    const sent = { text, clientId: newId() };
    this.drafts?.addSent(this.#conversation ?? null, sent);
    this.input.value = "";
    this.#changed();
    this.#save();
    this.dispatchEvent(new CustomEvent("send", { detail: sent }));
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
    if (this.#conversation !== undefined) this.drafts?.type(this.#conversation, this.input.value);
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

/** @param {string[]} texts */
function join(...texts) {
  return texts.filter((text) => text.trim()).join("\n\n");
}

function hasVirtualKeyboard() {
  return matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
}

customElements.define("chat-composer", ChatComposer);
