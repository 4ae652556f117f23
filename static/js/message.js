// @ts-check
/** One message on the screen: its parts, how it stands, and what it took. */

import { AnswerText } from "./answer-text.js";
import { aside } from "./aside.js";
import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { isCut, showBar } from "./message-bar.js";
import { showFound, showPicked } from "./message-sources.js";
import { countText, textOf } from "./parts.js";
import { reasoningPart } from "./reasoning-view.js";
import { withUnseenEscaped } from "./text-safety.js";
import { endLine, footerLine, fullDate, phaseLine, toolLine } from "./words.js";

/**
 * @typedef {import("./conversation-store.js").Message} Message
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{message: Message, phase: any, isStopping: boolean, modelTitle: string,
 *   place: import("./message-bar.js").Place, citing: import("./citations.js").Citing}} Shown
 * @typedef {{type: string, root: HTMLElement, update: (part: any, context: PartContext) => void,
 *   close?: () => void}} PartView
 * @typedef {{isLive: boolean, isWitnessed: boolean, thinkingMs: number | null, parts: Part[],
 *   isWorking: boolean, isAsking: boolean, citing: import("./citations.js").Citing}} PartContext
 *   `isLive`: more of this part may follow; `isWitnessed`: this tab saw the answer from its start;
 *   `thinkingMs`: what all reasoning took, where one part is all; `isWorking`: the answer goes on,
 *   `isAsking`: once its reader has said whether a tool may be used
 */

const DELETED = gettext("This message was deleted.");

/** An element for a message that is far away: of a thousand, a hundredth is ever looked at closely. */
export function sketchRoot() {
  const root = template().cloneNode(false);
  root.append(...copies("h2, .message__parts"));
  return root;
}

/** What an undrawn message is made of: an article with its parts. */
function template() {
  return find(document, "#message-template").content.firstElementChild;
}

/** Of the template's own children those that match. @param {string} selector */
function copies(selector) {
  const wanted = [...template().children].filter((child) => child.matches(selector));
  return wanted.map((child) => child.cloneNode(true));
}

export class MessageView {
  /** How many code points of answer text are on the screen. */
  numShown = 0;
  isDrawn = false;
  /** @type {PartView[]} */
  #parts = [];
  /** Calls that were opened because they ask. @type {Set<string>} */
  #opened = new Set();

  /**
   * @param {HTMLElement} root rendered by the server, or what sketchRoot() makes
   */
  constructor(root) {
    this.root = root;
  }

  /**
   * Plain text, as the server renders it: enough for a message that is far away.
   * @param {Message} message
   */
  sketch(message) {
    this.#label(message);
    setText(find(this.root, ".message__text"), textOf(message.parts));
  }

  /** Add what a message has that is looked at closely: buttons, and how it stands. */
  #complete() {
    if (!this.root.querySelector(".message__foot")) this.root.append(...copies(".message__end, .message__foot"));
  }

  /** @param {Shown} shown */
  update({ message, phase, isStopping, modelTitle, place, citing }) {
    const isRunning = message.status === "running" || message.status === "sending";
    this.isDrawn = true;
    this.#complete();
    this.#label(message);
    this.root.setAttribute("aria-busy", String(isRunning && message.role === "assistant"));
    if (message.role === "user") this.#showQuestion(message);
    else this.#showAnswer(message, isRunning, phase, isStopping, modelTitle, citing);
    find(this.root, ".message__took").disabled = place.isTemporary || message.edited; // no trace is kept
    showBar(this.root, message, place);
    this.numShown = countText(message.parts);
  }

  /** It is shown no more. */
  close() {
    for (const part of this.#parts) part.close?.();
  }

  /** @param {Message} message */
  #label(message) {
    this.root.className = `message message--${message.role}`;
    this.root.dataset.message = message.id;
    this.root.dataset.status = message.status;
    this.root.toggleAttribute("data-pinned", Boolean(message.is_pinned));
    setText(find(this.root, "h2"), message.role === "user" ? gettext("You said") : gettext("Vitrine said"));
  }

  /** @param {Message} message */
  #showQuestion(message) {
    const isDeleted = message.status === "deleted";
    setText(find(this.root, ".message__text"), isDeleted ? DELETED : textOf(message.parts));
    showPicked(this.root, message);
  }

  /**
   * @param {Message} message
   * @param {boolean} isRunning
   * @param {any} phase
   * @param {boolean} isStopping
   * @param {string} modelTitle
   * @param {import("./citations.js").Citing} citing
   */
  #showAnswer(message, isRunning, phase, isStopping, modelTitle, citing) {
    this.#showParts(message, isRunning && !isStopping, phase?.phase === "approval", citing);
    showFound(this.root, message, citing);
    this.#showPhase(isRunning, isStopping ? null : phase, isStopping ? gettext("Stopping") : null);
    this.#showEnd(message, isRunning);
    const took = find(this.root, ".message__took");
    setText(took, isRunning ? "" : footerLine({ ...message, model: modelTitle }));
    took.hidden = !took.textContent;
    took.title = `${fullDate(message.created_at)}. ${gettext("Opens how this answer came about.")}`;
  }

  /**
   * @param {Message} message
   * @param {boolean} isLive
   * @param {boolean} isAsking
   * @param {import("./citations.js").Citing} citing
   */
  #showParts({ parts, key, timings }, isLive, isAsking, citing) {
    const holder = find(this.root, ".message__parts");
    holder.querySelector(":scope > .message__text")?.remove(); // plain text from the server
    const numThoughts = parts.filter((part) => part.type === "reasoning").length;
    const thinkingMs = (numThoughts === 1 && timings?.thinking_ms) || null;
    const visible = parts.filter((part) => part.type !== "tool_result");
    visible.forEach((part, index) => {
      if (this.#parts[index]?.type !== part.type) this.#replacePart(holder, index, part.type);
      const isLast = index === visible.length - 1;
      const context = { isLive: isLive && isLast, isWitnessed: key !== undefined, thinkingMs, parts, isWorking: isLive, isAsking, citing };
      this.#parts[index].update(part, context);
    });
    for (const left of this.#parts.splice(visible.length)) removePart(left);
  }

  /**
   * @param {HTMLElement} holder
   * @param {number} index
   * @param {string} type
   */
  #replacePart(holder, index, type) {
    for (const old of this.#parts.splice(index)) removePart(old);
    const view = makePart(type);
    this.#parts.push(view);
    holder.append(view.root);
  }

  /**
   * @param {boolean} isRunning
   * @param {any} phase
   * @param {string | null} instead
   */
  #showPhase(isRunning, phase, instead) {
    const root = find(this.root, ".phase");
    root.hidden = !isRunning;
    if (!isRunning) return;
    const { name, text, progress } = phaseLine(phase);
    let words = find(root, ".phase__words");
    if (root.dataset.phase !== name) words.replaceWith((words = words.cloneNode())); // fades in anew
    setText(words, instead ?? text);
    root.dataset.phase = name;
    const isAsking = phase?.phase === "approval" && instead === null;
    for (const button of root.querySelectorAll("button")) button.hidden = !isAsking;
    if (isAsking) this.#openCall(phase.detail);
    const bar = find(root, "progress");
    bar.hidden = progress === null;
    bar.value = progress ?? 0;
  }

  /** Nobody allows what they have not seen whole: open once, then it is its reader's. @param {string} id */
  #openCall(id) {
    if (this.#opened.has(id)) return;
    const calls = /** @type {NodeListOf<HTMLDetailsElement>} */ (this.root.querySelectorAll("details[data-call]"));
    const asked = [...calls].find((call) => call.dataset.call === id);
    if (!asked) return; // the phase may be here before the call
    this.#opened.add(id);
    asked.open = true;
  }

  /**
   * @param {Message} message
   * @param {boolean} isRunning
   */
  #showEnd(message, isRunning) {
    const words = isRunning ? null : endLine(message);
    const root = find(this.root, ".message__end");
    root.hidden = words === null;
    setText(find(root, "[data-end]"), words ?? "");
    find(root, "[data-act=again]").hidden = message.status !== "failed";
    find(root, "[data-act=continue]").hidden = !isCut(message);
    const isAsking = message.error?.code === "confirmation_needed";
    const decision = message.status === "refused" && !isAsking ? message.error?.decision : null;
    const appeal = find(root, "[data-appeal]");
    appeal.hidden = !decision;
    appeal.setAttribute("href", `/settings/moderation#decision-${decision ?? ""}`);
    find(root, "[data-act=confirm]").hidden = !isAsking;
    const traceId = message.status === "failed" ? message.error?.trace_id : null;
    find(root, ".message__trace").hidden = !traceId;
    setText(find(root, ".message__trace code"), traceId ?? "");
  }
}

/** @param {PartView} part */
function removePart(part) {
  part.close?.();
  part.root.remove();
}

/**
 * @param {string} type
 * @returns {PartView}
 */
function makePart(type) {
  if (type === "reasoning") return reasoningPart();
  if (type === "tool_call") return toolPart();
  const root = element("div", { class: "prose" });
  const prose = new AnswerText(root);
  return { type, root, update: (part, { isLive, citing }) => prose.update(part.text, !isLive, citing) };
}

/** What a tool is given: a program, or another text of several lines, as its lines. @param {string} json */
function givenText(json) {
  try {
    const [only, ...others] = Object.values(JSON.parse(json));
    if (!others.length && typeof only === "string" && only.includes("\n")) return only;
  } catch {
    // a model may write what is no JSON; then this is the truth
  }
  return json;
}

/** @returns {PartView} */
function toolPart() {
  const { root, summary, body } = aside("wrench", "aside aside--tool");
  const given = element("dd");
  const returned = element("dd");
  const list = [element("dt", {}, [gettext("Given")]), given, element("dt", {}, [gettext("Returned")]), returned];
  body.append(element("dl", {}, list));
  return {
    type: "tool_call",
    root,
    update(part, { parts, ...how }) {
      const result = parts.find((other) => other.type === "tool_result" && other.id === part.id);
      const outcome = result?.type === "tool_result" ? result : null;
      root.dataset.call = part.id;
      setText(summary, toolLine(part, outcome));
      setText(given, withUnseenEscaped(givenText(part.arguments)));
      setText(returned, outcome?.content ?? gettext("Nothing yet"));
      root.toggleAttribute("data-failed", outcome?.is_error ?? false);
      if (part.name === "create_image") import("./made-picture.js").then(({ showMade }) => showMade(root, part, outcome, how));
      if (part.name === "remember" && outcome) import("./remembered.js").then(({ showRemembered }) => showRemembered(root, outcome));
    },
    close: () => root.previousElementSibling?.matches(".remembered, .made") && root.previousElementSibling.remove(),
  };
}
