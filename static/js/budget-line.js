// @ts-check
/**
 * <budget-line>: a quiet line above the composer once most of a budget is used, until it is dismissed
 * for the day.
 */

import { budgetLine, dismissal, isSpent, mostPressing } from "./budget-words.js";
import { element, icon, morphChildren } from "./dom.js";
import { gettext } from "./i18n.js";
import { preference, remember } from "./preferences.js";

/** @typedef {import("./budget-words.js").Budget} Budget */

const AGAIN_MS = 20_000;

export class BudgetLine extends HTMLElement {
  /** @type {() => Promise<Budget[]>} how budgets stand now */
  read = async () => [];
  /** @type {Budget[]} */
  #budgets = [];
  /** @type {Budget | null} the one that is told of */
  #shown = null;
  #readAt = 0;

  connectedCallback() {
    this.addEventListener("click", (event) => {
      if (/** @type {Element} */ (event.target).closest("button")) this.#dismiss();
    });
  }

  /** @param {Budget[]} budgets */
  show(budgets) {
    this.#budgets = budgets;
    this.#shown = mostPressing(budgets, (one) => preference(`budget.${one.name}`) === dismissal(one));
    const wanted = document.createDocumentFragment();
    if (this.#shown) wanted.append(line(this.#shown));
    morphChildren(this, wanted);
  }

  /** An answer has ended: ask again, and not more often than somebody can read. */
  async refresh() {
    if (Date.now() - this.#readAt < AGAIN_MS) return;
    await this.#read();
  }

  /** An answer was refused for it: say why, dismissed or not. */
  async insist() {
    await this.#read();
    for (const { name } of this.#budgets) remember(`budget.${name}`, null);
    this.show(this.#budgets);
  }

  async #read() {
    this.#readAt = Date.now();
    const budgets = await this.read().catch(() => null); // offline, which the status bar tells
    if (budgets) this.show(budgets);
  }

  #dismiss() {
    if (!this.#shown) return;
    remember(`budget.${this.#shown.name}`, dismissal(this.#shown));
    this.show(this.#budgets);
  }
}

/** @param {Budget} budget */
function line(budget) {
  const link = element("a", { href: "/settings/usage" }, [gettext("Usage")]);
  const close = element("button", { type: "button", "aria-label": gettext("Not again today"), title: gettext("Not again today") }, [icon("x")]);
  const tone = isSpent(budget) ? "danger" : "warm";
  return element("div", { class: "status", "data-tone": tone }, [
    icon("circle-alert"),
    element("p", {}, [budgetLine(budget), " ", link]),
    close,
  ]);
}

customElements.define("budget-line", BudgetLine);
