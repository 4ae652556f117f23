// @ts-check
/** The trace of an answer: a waterfall on one time axis, its tokens, its cost, and what made it. */

import { copyText, element, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { replayButton } from "./replay-button.js";
import { duration, endWords, money, rowsOf, ticksOf, tokenShares } from "./trace-words.js";
import { count, engineTime, fullDate, rate } from "./words.js";

const COPIED_MS = 1600;

/**
 * @param {any} trace of GET /api/messages/<id>/trace
 * @param {string} modelTitle
 * @param {{replay: (signal: AbortSignal) => AsyncIterable<any>,
 *   toggleTokens: (button: HTMLElement) => void, showsTokens: boolean}} looks second looks at it
 * @param {HTMLElement | null} documents what was found in them (retrieval-view.js)
 * @returns {HTMLElement}
 */
export function renderTrace(trace, modelTitle, looks, documents) {
  const parts = [figures(trace)];
  if (documents) parts.push(documents);
  if (trace.spans.length) parts.push(waterfall(trace));
  else parts.push(element("p", { class: "trace__note" }, [gettext("This answer is older than its trace: nothing tells when it did what.")]));
  if (trace.usage?.prompt_tokens) parts.push(tokens(trace.usage));
  parts.push(madeWith(trace, modelTitle));
  const root = element("div", { class: "trace" }, parts);
  root.append(...actions(trace, looks));
  return root;
}

/** @param {any} trace */
function figures({ first_token_ms, timings, usage, engine_ms, cost, total_ms }) {
  const list = element("dl", { class: "figures" });
  const add = (/** @type {string} */ value, /** @type {string} */ words) =>
    list.append(element("div", {}, [element("dd", {}, [value]), element("dt", {}, [words])]));
  if (first_token_ms != null) add(duration(first_token_ms), gettext("to first token"));
  else if (total_ms) add(duration(total_ms), gettext("in all"));
  if (usage?.completion_tokens > 1 && timings?.decode_ms) {
    const [figure, unit] = rate(usage.completion_tokens / (timings.decode_ms / 1000)).split(" ");
    add(figure, unit);
  }
  if (engine_ms) add(engineTime(engine_ms), gettext("of the engine"));
  if (cost) add(money(cost), gettext("by its price"));
  return list;
}

/** @param {any} trace */
function waterfall({ spans, total_ms, first_token_ms }) {
  const list = element("ol", { class: "waterfall__rows" });
  for (const row of rowsOf(spans, total_ms)) list.append(renderRow(row));
  list.addEventListener("keydown", (event) => walk(list, event));
  /** @type {HTMLElement | null} */ (list.firstElementChild)?.setAttribute("tabindex", "0");
  const axis = element("div", { class: "waterfall__axis", "aria-hidden": "true" });
  for (const { share, words } of ticksOf(total_ms)) {
    const tick = element("span", {}, [words]);
    tick.style.setProperty("--at", String(share));
    axis.append(tick);
  }
  const root = element("section", { class: "waterfall" }, [heading(gettext("What happened when"), duration(total_ms)), list, axis]);
  if (first_token_ms == null) return root;
  const share = first_token_ms / total_ms;
  root.dataset.first = share > 0.6 ? "late" : "early";
  root.style.setProperty("--first", String(share));
  axis.append(element("span", { class: "waterfall__first" }, [gettext("first token")]));
  return root;
}

/** @param {import("./trace-words.js").Row} row */
function renderRow({ name, tone, time, about, start, size, cached }) {
  const bar = element("span", { class: "bar-of-time", "data-tone": tone });
  bar.style.setProperty("--start", String(start));
  bar.style.setProperty("--size", String(size));
  if (cached) bar.style.setProperty("--cached", String(cached));
  return element("li", { class: "span", tabindex: "-1" }, [
    element("span", { class: "span__name" }, [name]),
    element("span", { class: "span__about" }, [about]),
    element("span", { class: "span__time" }, [time]),
    element("span", { class: "span__track", "aria-hidden": "true" }, [bar]),
  ]);
}

/**
 * Arrow keys go from span to span.
 * @param {HTMLElement} list
 * @param {KeyboardEvent} event
 */
function walk(list, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const rows = /** @type {HTMLElement[]} */ ([...list.children]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = step && at >= 0 ? rows[at + step] : undefined;
  if (!next) return;
  event.preventDefault();
  rows[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/** @param {any} usage */
function tokens(usage) {
  const shares = tokenShares(usage).filter((each) => each.tokens > 0);
  const bar = element("div", { class: "token-bar", "aria-hidden": "true" });
  const legend = element("ul", { class: "token-legend" });
  for (const { tone, share, figure, words } of shares) {
    const piece = element("span", { "data-tone": tone });
    piece.style.setProperty("--size", String(share));
    bar.append(piece);
    const mark = element("span", { class: "token-legend__mark", "data-tone": tone, "aria-hidden": "true" });
    legend.append(element("li", {}, [mark, element("b", {}, [figure]), ` ${words}`]));
  }
  return element("section", {}, [heading(gettext("Tokens")), bar, legend]);
}

/**
 * @param {any} trace
 * @param {string} modelTitle
 */
function madeWith(trace, modelTitle) {
  const params = trace.turns[0]?.params ?? {};
  const list = element("dl", { class: "facts" });
  const add = (/** @type {string} */ name, /** @type {any} */ value, isCode = false) => {
    if (value === "" || value == null) return;
    const shown = isCode ? element("code", {}, [String(value)]) : String(value);
    list.append(element("div", {}, [element("dt", {}, [name]), element("dd", {}, [shown])]));
  };
  add(gettext("Model"), modelTitle);
  add(gettext("Revision"), trace.revision, true);
  add(gettext("Seed"), params.seed, true);
  add(gettext("Temperature"), params.temperature);
  add(gettext("Ended"), endWords(trace.finish_reason));
  add(gettext("Problem"), trace.error?.message);
  if (trace.attempts > 1) add(gettext("Begun"), count(trace.attempts, "time"));
  add(gettext("Asked"), fullDate(trace.created_at));
  add(gettext("Trace id"), trace.trace_id, true);
  return element("section", {}, [heading(gettext("Made with")), list]);
}

/**
 * @param {any} trace
 * @param {Parameters<typeof renderTrace>[2]} looks
 */
function actions(trace, looks) {
  const copy = element("button", { type: "button", class: "button" }, [icon("copy"), element("span", {}, [gettext("Copy as JSON")])]);
  copy.addEventListener("click", async () => {
    const told = await copyText(JSON.stringify(trace, null, 2)).then(() => gettext("Copied"), ({ message }) => message);
    const words = /** @type {HTMLElement} */ (copy.lastElementChild);
    setText(words, told);
    setTimeout(() => setText(words, gettext("Copy as JSON")), COPIED_MS);
  });
  if (!trace.turns.length) return [element("div", { class: "trace__actions" }, [copy])];
  const { button, outcome } = replayButton(looks.replay);
  const pressed = String(looks.showsTokens);
  const tokens = element("button", { type: "button", class: "button", "aria-pressed": pressed, "data-show-tokens": "" }, [
    icon("scan-text"), gettext("Token by token"),
  ]);
  tokens.addEventListener("click", () => looks.toggleTokens(tokens));
  return [element("div", { class: "trace__actions" }, [tokens, button, copy]), outcome];
}

/**
 * @param {string} words
 * @param {string} [figure]
 */
function heading(words, figure = "") {
  const parts = [words, ...(figure ? [element("span", {}, [figure])] : [])];
  return element("h3", {}, parts);
}
