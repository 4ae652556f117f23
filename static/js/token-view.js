// @ts-check
/**
 * An answer token by token in the place of its prose: shaded and underlined by surprise; a token that
 * is pointed at or has the focus shows what else could have come, and choosing one branches there. Arrow
 * keys go from token to token, Enter into the choices, Escape out of them. Below, the same as a list.
 */

import { element, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { placePopover } from "./popover.js";
import { STEP_WORDS, bitsWords, chance, shown, stepOf, visible } from "./token-words.js";

const LEAVE_MS = 200;

/**
 * @typedef {{id: number, text: string, logprob: number, is_mark?: boolean}} Alternative
 * @typedef {{id: number, text: string, logprob: number | null, top: Alternative[]}} Token
 * @typedef {{turn: number, token: number, choice: number}} Branch
 */

export class TokenView {
  root = element("div", { class: "tokens" });

  /** @type {Token[]} over all turns */
  #tokens = [];
  /** @type {{turn: number, token: number}[]} */
  #places = [];
  /** @type {HTMLElement[]} */
  #spans = [];
  #card = element("div", { class: "popover token-card", popover: "manual", role: "group" });
  #leaving = 0;

  /**
   * @param {{index: number, tokens: Token[]}[]} turns
   * @param {((branch: Branch) => void) | null} branch null where nothing can be branched
   */
  constructor(turns, branch) {
    this.branch = branch;
    const text = element("div", { class: "tokens__text", dir: "auto", role: "group", "aria-label": gettext("The answer, token by token") });
    for (const turn of turns) {
      if (turn.index) text.append(element("p", { class: "tokens__turn" }, [gettext("Turn %(n)s, after its tools", { n: turn.index + 1 })]));
      turn.tokens.forEach((token, number) => {
        this.#tokens.push(token);
        this.#places.push({ turn: turn.index, token: number });
        text.append(this.#span(token, this.#spans.length));
      });
    }
    if (this.#spans[0]) this.#spans[0].tabIndex = 0;
    this.#listen(text);
    this.root.append(legend(), text, this.#list(), this.#card);
  }

  /**
   * @param {Token} token
   * @param {number} index
   */
  #span(token, index) {
    const words = `${visible(token.text)}, ${chance(token.logprob)}`;
    const span = element("span", { class: "token", role: "button", tabindex: "-1", "aria-label": words, "data-token": String(index) });
    const step = stepOf(token.logprob);
    if (step !== null) span.dataset.step = String(step);
    span.textContent = shown(token.text);
    this.#spans.push(span);
    return span;
  }

  /** @param {HTMLElement} text */
  #listen(text) {
    text.addEventListener("pointerover", (event) => this.#over(event));
    text.addEventListener("focusin", (event) => this.#over(event));
    text.addEventListener("click", (event) => this.#over(event));
    text.addEventListener("keydown", (event) => this.#keyInText(event));
    for (const region of [text, this.#card]) {
      region.addEventListener("pointerleave", () => this.#leave());
      region.addEventListener("focusout", () => this.#leave());
    }
    this.#card.addEventListener("pointerenter", () => clearTimeout(this.#leaving));
    this.#card.addEventListener("focusin", () => clearTimeout(this.#leaving));
    this.#card.addEventListener("keydown", (event) => this.#keyInCard(event));
    this.#card.addEventListener("click", (event) => this.#choose(event));
  }

  /** @param {Event} event */
  #over(event) {
    const span = /** @type {Element} */ (event.target).closest(".token");
    if (span) this.#show(Number(/** @type {HTMLElement} */ (span).dataset.token));
  }

  /** @param {number} index */
  #show(index) {
    clearTimeout(this.#leaving);
    for (const marked of this.root.querySelectorAll(".token[data-open]")) marked.removeAttribute("data-open");
    this.#spans[index].dataset.open = "";
    this.#card.dataset.for = String(index);
    this.#card.replaceChildren(...this.#cardOf(this.#tokens[index]));
    this.#card.setAttribute("aria-label", gettext("In the place of %(token)s", { token: visible(this.#tokens[index].text) }));
    if (!this.#card.matches(":popover-open")) this.#card.showPopover();
    placePopover(this.#card, this.#spans[index]);
  }

  /** @param {Token} token */
  #cardOf(token) {
    const head = element("p", { class: "token-card__head" }, [
      element("code", {}, [visible(token.text)]),
      element("span", {}, [[chance(token.logprob), bitsWords(token.logprob)].filter(Boolean).join(" · ")]),
    ]);
    const list = element("ul", {});
    for (const other of token.top) list.append(element("li", {}, [this.#alternative(other, other.id === token.id)]));
    if (!token.top.some(({ id }) => id === token.id) && token.logprob !== null) {
      list.append(element("li", {}, [this.#alternative({ ...token, logprob: token.logprob }, true)]));
    }
    return token.logprob === null ? [head] : [head, list];
  }

  /**
   * @param {Alternative} other
   * @param {boolean} isWritten
   */
  #alternative(other, isWritten) {
    const bar = element("span", { class: "token-card__bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(Math.exp(other.logprob)));
    const name = element("span", {}, [element("code", {}, [visible(other.text)])]);
    if (isWritten) name.append(element("small", {}, [gettext("written")]));
    const parts = [name, bar, element("span", {}, [chance(other.logprob)])];
    if (isWritten || other.is_mark || !this.branch) return element("span", { class: "token-card__row" }, parts);
    const label = gettext("Go on with %(token)s instead, %(chance)s", { token: visible(other.text), chance: chance(other.logprob) });
    const attributes = { type: "button", class: "token-card__row", "data-choice": String(other.id), "aria-label": label };
    return element("button", { ...attributes, title: gettext("Go on from here with this instead") }, parts);
  }

  #leave() {
    clearTimeout(this.#leaving);
    this.#leaving = window.setTimeout(() => {
      if (!this.root.contains(document.activeElement)) this.hideCard();
    }, LEAVE_MS);
  }

  hideCard() {
    clearTimeout(this.#leaving);
    for (const marked of this.root.querySelectorAll(".token[data-open]")) marked.removeAttribute("data-open");
    if (this.#card.matches(":popover-open")) this.#card.hidePopover();
  }

  /** @param {KeyboardEvent} event */
  #keyInText(event) {
    const at = Number(/** @type {HTMLElement} */ (event.target).dataset.token);
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#card.querySelector("button")?.focus();
    } else if (event.key === "Escape" && this.#card.matches(":popover-open")) {
      event.preventDefault();
      this.hideCard();
    } else if (event.key in steps) {
      event.preventDefault();
      this.#focus(at + steps[/** @type {keyof typeof steps} */ (event.key)]);
    }
  }

  /** @param {KeyboardEvent} event */
  #keyInCard(event) {
    const buttons = [...this.#card.querySelectorAll("button")];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.#focus(Number(this.#card.dataset.for));
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      buttons.at((at + (event.key === "ArrowDown" ? 1 : -1)) % buttons.length)?.focus();
    }
  }

  /** @param {number} index */
  #focus(index) {
    const span = this.#spans[index];
    if (!span) return;
    for (const other of this.root.querySelectorAll(".token[tabindex='0']")) /** @type {HTMLElement} */ (other).tabIndex = -1;
    span.tabIndex = 0;
    span.focus();
  }

  /** @param {Event} event */
  #choose(event) {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-choice]"));
    if (!button || !this.branch) return;
    this.hideCard();
    this.branch({ ...this.#places[Number(this.#card.dataset.for)], choice: Number(button.dataset.choice) });
  }

  /** The same for those who read it in order; made when it is opened, for it is long. */
  #list() {
    const details = element("details", { class: "tokens__list" }, [element("summary", {}, [gettext("As a list")])]);
    details.addEventListener("toggle", () => {
      if (details.querySelector("table")) return;
      const rows = this.#tokens.map((token) => listRow(token));
      const head = element("tr", {}, [gettext("Token"), gettext("Chance"), gettext("Surprise"), gettext("Others")].map((words) => element("th", { scope: "col" }, [words])));
      details.append(element("table", {}, [element("thead", {}, [head]), element("tbody", {}, rows)]));
    });
    return details;
  }
}

/** @param {Token} token */
function listRow(token) {
  const others = token.top.filter(({ id }) => id !== token.id).slice(0, 3);
  const words = others.map((other) => `${visible(other.text)} ${chance(other.logprob)}`).join(", ");
  const cells = [chance(token.logprob), bitsWords(token.logprob), words];
  return element("tr", {}, [
    element("th", { scope: "row" }, [element("code", {}, [visible(token.text)])]),
    ...cells.map((cell) => element("td", {}, [cell])),
  ]);
}

function legend() {
  const root = element("p", { class: "tokens__legend" }, [gettext("How surprised the model was: ")]);
  STEP_WORDS.forEach((words, step) => {
    const sample = element("span", { class: "token", "data-step": String(step) });
    setText(sample, words);
    root.append(sample, " ");
  });
  return root;
}
