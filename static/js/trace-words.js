// @ts-check
/**
 * A trace in words and figures: what each span is called, what it says of itself, where it stands on
 * the axis. Pure functions. Kinds of spans are open: one that is not known here is shown by its name.
 *
 * @typedef {{kind: string, start_ms: number, end_ms: number, facts: Record<string, any>}} Span
 * @typedef {{name: string, tone: string, time: string, about: string, start: number, size: number,
 *   cached: number}} Row `start` and `size` are shares of the whole, `cached` of the bar itself
 */

import { LOCALE, gettext, ngettext } from "./i18n.js";
import { count, seconds, thousands, toolName } from "./words.js";

const tenths = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });

/** @type {Record<string, [string, string]>} kind → name, tone */
const KINDS = {
  accepted: [gettext("Accepted"), "waiting"],
  prompt: [gettext("Prompt built"), "waiting"],
  moderation: [gettext("Checked"), "safety"],
  cache: [gettext("Looked in the cache"), "waiting"],
  images: [gettext("Pictures prepared"), "reading"],
  retrieval: [gettext("Looked up"), "reading"],
  loading: [gettext("Model loaded"), "waiting"],
  queued: [gettext("Queued"), "waiting"],
  asking: [gettext("Waited"), "waiting"],
  prefill: [gettext("Read"), "reading"],
  decode: [gettext("Written"), "writing"],
  tool: [gettext("Tool"), "tools"],
  interrupted: [gettext("Interrupted"), "broken"],
  saved: [gettext("Saved"), "waiting"],
};

/**
 * @param {Span[]} spans
 * @param {number} totalMs
 * @returns {Row[]}
 */
export function rowsOf(spans, totalMs) {
  return spans.map((span) => rowOf(span, Math.max(totalMs, 0.001)));
}

/**
 * @param {Span} span
 * @param {number} totalMs
 */
function rowOf(span, totalMs) {
  const { kind, start_ms: startMs, end_ms: endMs, facts } = span;
  const [name, tone] = KINDS[kind] ?? [sentence(kind), "waiting"];
  return {
    name: kind === "tool" && facts.name ? toolName(facts.name) : name,
    tone,
    time: duration(endMs - startMs),
    about: aboutSpan(span),
    start: startMs / totalMs,
    size: (endMs - startMs) / totalMs,
    cached: kind === "prefill" && facts.tokens ? facts.cached / facts.tokens : 0,
  };
}

/** @param {Span} span */
function aboutSpan({ kind, start_ms, end_ms, facts }) {
  const tookMs = end_ms - start_ms;
  switch (kind) {
    case "accepted":
      return gettext("your message is stored");
    case "prompt":
      return facts.tokens ? count(facts.tokens, "token") : "";
    case "queued":
      return facts.position ? gettext("%(n)s in line", { n: thousands(facts.position) }) : "";
    case "moderation":
      return verdictWords(facts);
    case "retrieval":
      return foundWords(facts);
    case "images":
      return facts.images === undefined ? "" : gettext("%(n)s shown", { n: thousands(facts.images) });
    case "asking":
      return gettext("for %(name)s", { name: facts.name });
    case "prefill":
      return [count(facts.tokens, "token"), cachedWords(facts)].filter(Boolean).join(gettext(", "));
    case "decode":
      return writtenWords(facts.tokens ?? 0, tookMs);
    case "tool":
      return facts.is_error ? gettext("gave an error") : [facts.model, facts.size, facts.cost && money(facts.cost)].filter(Boolean).join(", ");
    case "interrupted":
      return gettext("the server stopped, another process went on");
    case "saved":
      return gettext("the answer is stored");
    default:
      return Object.entries(facts)
        .filter(([name]) => name !== "turn")
        .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)
        .join(", ");
  }
}

/** @param {Record<string, any>} facts */
function verdictWords({ action, categories, has_failed: hasFailed }) {
  const what = { note: gettext("noted"), review: gettext("sent to review"), redact: gettext("taken out") }[action];
  const found = action === "allow" ? gettext("nothing was found") : (what ?? gettext("stopped"));
  const words = categories.length ? `${found}: ${categories.join(gettext(", "))}` : found;
  return hasFailed ? `${words}; ${gettext("not every classifier could be asked")}` : words;
}

/** @param {Record<string, any>} facts */
function foundWords({ excerpts, candidates }) {
  if (excerpts === undefined) return ""; // it was looked up before an interruption
  const found = candidates ? gettext("%(n)s found", { n: thousands(candidates) }) : "";
  return [found, ngettext("%(n)s passage shown", "%(n)s passages shown", excerpts)].filter(Boolean).join(gettext(", "));
}

/** @param {Record<string, any>} facts */
function cachedWords({ tokens, cached }) {
  if (!cached) return gettext("none from the cache");
  return cached >= tokens ? gettext("all from the cache") : gettext("%(n)s from the cache", { n: thousands(cached) });
}

/**
 * @param {number} tokens
 * @param {number} tookMs
 */
function writtenWords(tokens, tookMs) {
  if (tokens < 2 || tookMs <= 0) return tokens ? count(tokens, "token") : "";
  return gettext("%(tokens)s, %(time)s each", { tokens: count(tokens, "token"), time: milliseconds(tookMs / (tokens - 1)) }); // the first is there at 0
}

/**
 * Round times between 0 and the end, about four of them, for the axis.
 * @param {number} totalMs
 */
export function ticksOf(totalMs) {
  if (!(totalMs > 0)) return [];
  const rough = totalMs / 4;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * magnitude).find((each) => each >= rough) ?? rough;
  const ticks = [];
  for (let at = 0; at <= totalMs * 0.97; at += step) ticks.push({ share: at / totalMs, words: at ? duration(at) : "0" });
  return ticks;
}

/** @param {number} ms */
export function duration(ms) {
  return ms >= 999.5 ? seconds(ms / 1000) : milliseconds(ms);
}

/** @param {number} ms */
function milliseconds(ms) {
  const figure = ms > 0 && ms < 1 ? "< 1" : ms < 10 ? tenths.format(ms) : Math.round(ms);
  return gettext("%(n)s ms", { n: figure });
}

/**
 * The tokens of an answer as shares of one bar.
 * @param {{prompt_tokens: number, cached_tokens: number, completion_tokens: number}} usage
 */
export function tokenShares({ prompt_tokens, cached_tokens, completion_tokens }) {
  const total = Math.max(1, prompt_tokens + completion_tokens);
  return [
    { tone: "cached", tokens: cached_tokens, words: gettext("from the cache") },
    { tone: "reading", tokens: prompt_tokens - cached_tokens, words: gettext("read") },
    { tone: "writing", tokens: completion_tokens, words: gettext("written") },
  ].map((share) => ({ ...share, share: share.tokens / total, figure: thousands(share.tokens) }));
}

/** @param {{amount: string, currency: string}} cost */
export function money({ amount, currency }) {
  const value = Number(amount);
  const digits = { minimumFractionDigits: 2, maximumSignificantDigits: 2 };
  try {
    return new Intl.NumberFormat(LOCALE, { style: "currency", currency, ...digits }).format(value);
  } catch {
    return `${value} ${currency}`; // a currency of one's own
  }
}

/** @type {Record<string, string>} */
const ENDS = {
  stop: gettext("by itself"),
  length: gettext("at its length limit"),
  tool_calls: gettext("with a tool call"),
  stopped: gettext("stopped by you"),
  error: gettext("with an error"),
};

/** @param {string} reason */
export function endWords(reason) {
  return ENDS[reason] ?? reason;
}

/** @param {string} name */
function sentence(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
