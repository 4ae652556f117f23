// @ts-check
/** One message on the screen: its parts, how it stands, and what it took. */

import { element, find, icon, setText } from "./dom.js";
import { countText, textOf } from "./parts.js";
import { Prose } from "./prose.js";
import { endLine, footerLine, fullDate, phaseLine, seconds, toolLine } from "./words.js";

/**
 * @typedef {import("./conversation-store.js").Message} Message
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{message: Message, phase: any, isStopping: boolean, modelTitle: string}} Shown
 * @typedef {{type: string, root: HTMLElement, update: (part: any, context: PartContext) => void}} PartView
 * @typedef {{isLive: boolean, isWitnessed: boolean, parts: Part[]}} PartContext
 *   `isLive`: more of this part may follow; `isWitnessed`: this tab saw the answer from its start
 */

export class MessageView {
  /** How many code points of answer text are on the screen. */
  numShown = 0;
  isDrawn = false;
  /** @type {PartView[]} */
  #parts = [];

  /**
   * @param {HTMLElement} root rendered by the server, or a clone of #message-template
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

  /** @param {Shown} shown */
  update({ message, phase, isStopping, modelTitle }) {
    const isRunning = message.status === "running" || message.status === "sending";
    this.isDrawn = true;
    this.#label(message);
    this.root.setAttribute("aria-busy", String(isRunning && message.role === "assistant"));
    if (message.role === "user") this.#showQuestion(message);
    else this.#showAnswer(message, isRunning, phase, isStopping, modelTitle);
    this.numShown = countText(message.parts);
  }

  /** @param {Message} message */
  #label(message) {
    this.root.className = `message message--${message.role}`;
    this.root.dataset.message = message.id;
    this.root.dataset.status = message.status;
    setText(find(this.root, "h2"), message.role === "user" ? "You said" : "Vitrine said");
  }

  /** @param {Message} message */
  #showQuestion(message) {
    setText(find(this.root, ".message__text"), textOf(message.parts));
    this.root.toggleAttribute("data-wide", message.text.length > 60 || message.text.includes("\n"));
  }

  /**
   * @param {Message} message
   * @param {boolean} isRunning
   * @param {any} phase
   * @param {boolean} isStopping
   * @param {string} modelTitle
   */
  #showAnswer(message, isRunning, phase, isStopping, modelTitle) {
    this.#showParts(message, isRunning && !isStopping);
    this.#showPhase(isRunning, isStopping ? null : phase, isStopping ? "Stopping" : null);
    this.#showEnd(message, isRunning);
    const took = find(this.root, ".message__took");
    setText(took, isRunning ? "" : footerLine({ ...message, model: modelTitle }));
    took.title = fullDate(message.created_at);
    find(this.root, ".message__actions").hidden = isRunning || !textOf(message.parts);
  }

  /**
   * @param {Message} message
   * @param {boolean} isLive
   */
  #showParts({ parts, key }, isLive) {
    const holder = find(this.root, ".message__parts");
    holder.querySelector(":scope > .message__text")?.remove(); // plain text from the server
    const visible = parts.filter((part) => part.type !== "tool_result");
    visible.forEach((part, index) => {
      if (this.#parts[index]?.type !== part.type) this.#replacePart(holder, index, part.type);
      const isLast = index === visible.length - 1;
      const context = { isLive: isLive && isLast, isWitnessed: key !== undefined, parts };
      this.#parts[index].update(part, context);
    });
    for (const left of this.#parts.splice(visible.length)) left.root.remove();
  }

  /**
   * @param {HTMLElement} holder
   * @param {number} index
   * @param {string} type
   */
  #replacePart(holder, index, type) {
    for (const old of this.#parts.splice(index)) old.root.remove();
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
    const bar = find(root, "progress");
    bar.hidden = progress === null;
    bar.value = progress ?? 0;
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
    find(root, "[data-retry]").hidden = message.status !== "failed";
  }
}

/**
 * @param {string} type
 * @returns {PartView}
 */
function makePart(type) {
  if (type === "reasoning") return reasoningPart();
  if (type === "tool_call") return toolPart();
  const root = element("div", { class: "prose" });
  const prose = new Prose(root);
  return { type, root, update: (part, { isLive }) => prose.update(part.text, !isLive) };
}

/** @returns {PartView} */
function reasoningPart() {
  const { root, summary, body } = aside("brain", "aside");
  const prose = new Prose(body.appendChild(element("div", { class: "prose" })));
  let startedAt = 0;
  let time = "";
  let isOver = false;
  return {
    type: "reasoning",
    root,
    update(part, { isLive, isWitnessed }) {
      if (isLive && isWitnessed && !startedAt) startedAt = performance.now();
      if (startedAt && !isOver) time = seconds(Math.round((performance.now() - startedAt) / 1000));
      isOver = !isLive;
      const words = isLive ? ["Thinking", time].filter(Boolean).join(" · ") : "Thought";
      setText(summary, isLive || !time ? words : `Thought for ${time}`);
      prose.update(part.text, !isLive);
    },
  };
}

/** @returns {PartView} */
function toolPart() {
  const { root, summary, body } = aside("wrench", "aside aside--tool");
  const given = element("dd");
  const returned = element("dd");
  const list = [element("dt", {}, ["Given"]), given, element("dt", {}, ["Returned"]), returned];
  body.append(element("dl", {}, list));
  return {
    type: "tool_call",
    root,
    update(part, { parts }) {
      const result = parts.find((other) => other.type === "tool_result" && other.id === part.id);
      const outcome = result?.type === "tool_result" ? result : null;
      setText(summary, toolLine(part, outcome));
      setText(given, part.arguments);
      setText(returned, outcome?.content ?? "Nothing yet");
      root.toggleAttribute("data-failed", outcome?.is_error ?? false);
    },
  };
}

/**
 * A quiet line that opens.
 * @param {string} iconName
 * @param {string} className
 */
function aside(iconName, className) {
  const summary = element("span");
  const body = element("div", { class: "aside__body" });
  const head = element("summary", {}, [icon(iconName), summary, icon("chevron-down")]);
  return { root: element("details", { class: className }, [head, body]), summary, body };
}
