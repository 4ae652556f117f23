// @ts-check
/**
 * <chat-composer>: writing and sending. Enter sends unless the reader chose otherwise, is composing
 * characters or types on glass. What is written is kept per chat until the server has it (drafts.js).
 * Events: "send" {text, clientId}, "queue" {text, clientId}: to be sent after the answer that is being
 * written, "stop", "edit-last": ↑ in the empty box, "held" with the reason. What the message is answered from goes along
 * (picked-sources.js); as long as a file of it is being read, or its chat is not there or takes none, the message waits.
 */

import { insertText } from "./caret.js";
import { find, isComposing, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";
import { PickedSources } from "./picked-sources.js";
import { preference } from "./preferences.js";
import { keyWords } from "./shortcuts.js";

const SAVE_AFTER_MS = 300;
const HELD = {
  waiting: gettext("The message is sent as soon as its files are read."),
  failed: gettext("A file could not be read. Try it again or remove it, then the message can be sent."),
  loading: gettext("The message is sent as soon as the chat is open."),
  unopened: gettext("The chat could not be opened. Try again, then the message can be sent."),
  beside: gettext("Choose one of the answers; then the next message is sent."),
};
const FOR_GOOD = ["failed", "unopened"]; // until somebody does something about it and presses Enter again

/** Sooner after the first press nobody has seen that it is Stop by now. */
const DOUBLE_CLICK_MS = 400;

export class ChatComposer extends HTMLElement {
  #sentMs = -Infinity;
  /** @type {HTMLTextAreaElement} */
  input = find(this, "textarea");
  /** @type {HTMLFormElement} */
  form = find(this, "form");
  /** @type {HTMLButtonElement} */
  button = find(this, ".composer__send");
  /** @type {HTMLElement} */
  hint = find(this, "#composer-hint");
  /** @type {HTMLButtonElement} */
  queueButton = find(this, ".composer__queue");

  /** @type {import("./drafts.js").Drafts | null} set before the first chat is opened */
  drafts = null;

  /** @type {() => import("./chat-setup.js").NewChat} */
  setupOfNew = () => ({});

  /** What stops the answer, in words. */
  stopKeys = "";

  /** What the site writes down of a WAV file; throws with words. @type {(sound: Blob, signal: AbortSignal) => Promise<string>} */
  transcribe = async () => "";

  picked = new PickedSources();

  #isRunning = false;
  /** @type {(() => void) | null} what Enter meant, before the message could be sent */
  #waiting = null;
  /** Why the chat takes no message now. @type {"loading" | "unopened" | "beside" | null} */
  #closed = null;
  /** Why Enter did nothing. @type {keyof typeof HELD | null} */
  #held = null;
  /** @type {string | null | undefined} the chat that is written to; undefined: none is open yet */
  #conversation;
  #saving = 0;
  #usualHint = this.hint.textContent ?? "";

  connectedCallback() {
    this.input.addEventListener("input", () => {
      this.#waiting = this.#held = null;
      this.#changed();
    });
    this.picked.on("changed", () => this.#sendWhenReady());
    this.picked.on("picked", (chat) => this.drafts?.pick(chat, this.picked.readyIn(chat)));
    this.input.addEventListener("keydown", (event) => this.#keyPressed(event));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#isRunning) return this.dispatchEvent(new CustomEvent("stop"));
      this.#sentMs = performance.now();
      return this.#send();
    });
    // The second press of a double click would stop what the first one has asked for.
    this.button.addEventListener("click", (event) => {
      if (event.detail > 1 && performance.now() - this.#sentMs < DOUBLE_CLICK_MS) event.preventDefault();
    });
    this.button.type = "submit"; // not before: the page would be loaded anew, without what was typed
    this.queueButton.addEventListener("click", () => this.#queue());
    new ResizeObserver(() => this.#spread()).observe(this.input);
    addEventListener("pagehide", () => this.#save());
    const mic = find(this, ".composer__dictate");
    const isHere = this.dataset.dictation === "here" && Boolean(navigator.mediaDevices); // not on plain http
    mic.hidden = !(isHere || "SpeechRecognition" in globalThis || "webkitSpeechRecognition" in globalThis);
    mic.addEventListener("click", async () => (await import("./dictation-bar.js")).dictate(this, isHere));
  }

  /**
   * Change to another chat's draft.
   * @param {string | null} conversation
   */
  open(conversation) {
    if (conversation === this.#conversation) return; // it was opened before its messages were there
    this.#save();
    const early = this.#conversation === undefined ? this.input.value : ""; // before scripts were here
    this.#conversation = conversation;
    this.#waiting = this.#held = null;
    const typed = this.drafts?.typedIn(conversation) ?? "";
    this.input.value = early === typed ? typed : join(typed, early);
    this.#changed();
  }

  /**
   * The chat takes no message now; what Enter has held meanwhile is sent once it does.
   * @param {"loading" | "unopened" | "beside" | null} why
   */
  hold(why) {
    if (why === this.#closed) return;
    this.#closed = why;
    this.#sendWhenReady();
  }

  /** Why nothing can be sent now. @returns {keyof typeof HELD | null} */
  get #holds() {
    return this.#closed ?? this.picked.holds;
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
    if (isHere) this.moveTo(conversation);
  }

  /**
   * The chat has got a place on the server: what is typed and picked in it goes there.
   * @param {string} conversation
   */
  moveTo(conversation) {
    this.drafts?.type(this.#conversation ?? null, "");
    this.#conversation = conversation;
    this.picked.move(conversation);
    this.#save();
  }

  /**
   * The server did not take it: the text comes back, in front of what was typed since, or into the editor
   * of the message that it was to replace. Another answer has none.
   * @param {{text: string | null, clientId: string, conversation: string | null,
   *   sources?: import("./sources.js").Sources | null}} rejected
   */
  rejected({ text, sources, clientId, conversation }) {
    if (text === null) return;
    const wasKept = this.drafts?.dropSent(conversation, clientId);
    const typed = this.drafts?.of(conversation).typed ?? "";
    if (wasKept?.edits) this.drafts?.edit(conversation, wasKept.edits, text);
    else if (conversation === this.#conversation) this.takeBack({ text, sources });
    else if (wasKept) {
      this.drafts?.type(conversation, join(text, typed));
      this.picked.takeBack(sources, conversation);
    }
  }

  /**
   * The chat is deleted, and with it what was written for it.
   * @param {string} conversation
   */
  forget(conversation) {
    if (conversation === this.#conversation) {
      this.#save(); // for whoever takes the deletion back
      this.input.value = "";
    }
    this.drafts?.forget(conversation);
    this.picked.forget(conversation);
  }

  /**
   * Put text into the box as if it was typed, so that undo brings back what was there.
   * @param {string} text
   */
  fill(text) {
    this.input.focus();
    this.input.select();
    insertText(this.input, text);
    this.#changed();
  }

  focusInput() {
    this.input.focus({ preventScroll: true });
  }

  /** Not where a keyboard of glass would come up, nor out of the hands of who types elsewhere. */
  offerInput() {
    const isTyping = document.activeElement?.matches("input:not([type=checkbox], [type=radio]), textarea");
    if (matchMedia("(any-pointer: fine)").matches && !isTyping) this.focusInput();
  }

  #send() {
    const text = this.input.value.trim();
    if (!text || this.#isHeld(() => this.#sendOrQueue())) return;
    const sent = { text, clientId: newId(), ...this.#setupOfNew(), ...this.#sources() };
    this.drafts?.addSent(this.#conversation ?? null, sent);
    this.input.value = "";
    this.#changed();
    this.#save();
    this.dispatchEvent(new CustomEvent("send", { detail: sent }));
  }

  /**
   * Whether a file or the chat is not ready. What could not be done is done once they are.
   * @param {() => void} act
   */
  #isHeld(act) {
    this.#held = this.#holds;
    this.#waiting = this.#held && !FOR_GOOD.includes(this.#held) ? act : null;
    if (this.#held) {
      this.#showState();
      this.dispatchEvent(new CustomEvent("held", { detail: HELD[this.#held] }));
    }
    return this.#held !== null;
  }

  #sendWhenReady() {
    const act = this.#waiting;
    const why = this.#holds;
    const isForGood = why !== null && FOR_GOOD.includes(why);
    this.#held = this.#held && (act || isForGood) ? why : null; // or it would promise what nobody does
    if (!why || isForGood) this.#waiting = null;
    if (act && !why) act();
    this.#showState();
  }

  #sources() {
    const sources = this.picked.take();
    this.drafts?.pick(this.#conversation ?? null, null); // they are the message's now
    return sources ? { sources } : {};
  }

  /** The first message of a chat takes along how it is set up; sent again, it has to be the same. */
  #setupOfNew() {
    const setup = this.#conversation === null ? this.setupOfNew() : {};
    return Object.keys(setup).length ? { setup } : {};
  }

  /** @param {KeyboardEvent} event */
  #keyPressed(event) {
    if (event.key === "ArrowUp" && !this.input.value && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.dispatchEvent(new CustomEvent("edit-last"));
    }
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    if (isComposing(event)) return;
    if ((needsModifier() || hasVirtualKeyboard()) && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#sendOrQueue();
  }

  #sendOrQueue() {
    if (this.#isRunning) this.#queue();
    else this.#send();
  }

  #queue() {
    const text = this.input.value.trim();
    if (!text || this.#isHeld(() => this.#sendOrQueue())) return;
    const sent = { text, clientId: newId(), ...this.#sources() };
    this.input.value = "";
    this.#changed();
    this.#save();
    this.dispatchEvent(new CustomEvent("queue", { detail: sent }));
    this.focusInput();
  }

  /**
   * A message comes back to be changed, in front of what is typed.
   * @param {{text: string, sources?: import("./sources.js").Sources | null}} message
   */
  takeBack({ text, sources }) {
    this.picked.takeBack(sources);
    this.fill(join(text, this.input.value));
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
    this.button.setAttribute("aria-label", this.#isRunning ? gettext("Stop") : gettext("Send"));
    this.button.title = this.#isRunning ? gettext("Stop (%(keys)s)", { keys: this.stopKeys }) : gettext("Send");
    this.queueButton.hidden = !this.#isRunning || isEmpty;
    const canEscape = this.#isRunning && !hasVirtualKeyboard();
    const named = { keys: this.stopKeys, send: keyWords({ key: "enter", mod: needsModifier() }) };
    const keys = isEmpty ? gettext("%(keys)s stops the answer.", named) : gettext("%(send)s sends it after this answer. %(keys)s stops the answer.", named);
    setText(this.hint, this.#held ? HELD[this.#held] : canEscape ? keys : this.#usualHint);
    this.hint.toggleAttribute("data-held", this.#held !== null);
  }

  /** A second line has been begun: where there is little room the text then has whole rows, until it is gone. */
  #spread() {
    const { lineHeight, paddingTop, paddingBottom } = getComputedStyle(this.input);
    const lines = (this.input.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom)) / parseFloat(lineHeight);
    if (lines > 1.5) this.form.setAttribute("data-tall", "");
  }

  /** Browsers without field-sizing need help to grow. */
  #grow() {
    if (!this.input.value) this.form.removeAttribute("data-tall");
    if (CSS.supports("field-sizing", "content")) return;
    this.input.style.setProperty("block-size", "auto");
    this.input.style.setProperty("block-size", `${this.input.scrollHeight}px`);
  }
}

/** @param {string[]} texts */
function join(...texts) {
  return texts.filter((text) => text.trim()).join("\n\n");
}

function needsModifier() {
  return preference("send-key") === "mod-enter";
}

function hasVirtualKeyboard() {
  return matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
}

customElements.define("chat-composer", ChatComposer);
