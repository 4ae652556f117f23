// @ts-check
/** Every line that is made of numbers: phases, footers, tools, dates. Pure functions. */

import { LOCALE, filled, gettext, isolated, ngettext } from "./i18n.js";

const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });
const oneTenth = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 2 });
const percents = new Intl.NumberFormat(LOCALE, { style: "percent" });
const ordinals = new Intl.PluralRules("en", { type: "ordinal" });
/** @type {Record<string, string>} position in a queue, by the plural category of English ordinals */
const SUFFIXES = { one: "%(n)sst", two: "%(n)snd", few: "%(n)srd", other: "%(n)sth" };
const MAX_TOOL_CHARS = 64;
const DAY_MS = 86_400_000;

/**
 * What happens now. `progress` from 0 to 1 where there is something to measure.
 * @param {any} phase a phase of docs/socket.md, or null before the first
 * @returns {{name: string, text: string, progress: number | null}}
 */
export function phaseLine(phase) {
  switch (phase?.phase) {
    case "loading": {
      const detail = phase.detail ? ` · ${phase.detail}` : "";
      return line("loading", `${gettext("Loading the model")} · ${percent(phase.progress)}${detail}`, phase.progress);
    }
    case "queued": {
      const wait = phase.wait_s == null ? "" : ` · ${gettext("about %(time)s", { time: seconds(Math.max(1, Math.round(phase.wait_s))) })}`;
      return line("queued", gettext("Queued %(position)s", { position: ordinal(phase.position) }) + wait);
    }
    case "searching":
      return line("searching", gettext("Searching the documents"));
    case "asking":
      return line("asking", gettext("Waiting for %(name)s", { name: phase.detail }));
    case "prefill": {
      const cached = phase.cached ? ` · ${gettext("%(n)s from cache", { n: whole.format(phase.cached) })}` : "";
      const text = gettext("Reading %(done)s of %(total)s tokens", { done: whole.format(phase.done), total: whole.format(phase.total) });
      return line("prefill", text + cached, phase.total ? phase.done / phase.total : null);
    }
    case "decode":
      return line("decode", phase.tokens_per_s ? `${gettext("Writing")} · ${rate(phase.tokens_per_s)}` : gettext("Writing"));
    case "approval":
      return line("tool", gettext("May the tool be used, with what it is given here?"));
    case "tool":
      if (phase.detail === "create_image") return line("tool", gettext("Drawing"));
      return line("tool", gettext("Using the %(tool)s", { tool: phase.detail.includes("__") ? toolName(phase.detail) : phase.detail }));
    case "offline":
      return line("queued", gettext("No connection · the answer goes on as soon as it is back"));
    case "starting":
      return line("queued", gettext("Starting"));
    default:
      return line("queued", gettext("Sending"));
  }
}

/**
 * @param {string} name
 * @param {string} text
 * @param {number | null} [progress]
 */
function line(name, text, progress = null) {
  return { name, text, progress };
}

/**
 * What an answer took, in its footer.
 * @param {{model: string, usage?: any, timings?: any, resumed?: boolean, edited?: boolean,
 *   from_cache?: import("./run-state.js").FromCache | null}} answer
 */
export function footerLine({ model, usage, timings, resumed, edited, from_cache: fromCache }) {
  const words = [model];
  if (fromCache) words.push(gettext("from the cache, first given %(time)s", { time: fullDate(fromCache.asked_at) }));
  if (edited) words.push(gettext("edited by you"));
  if (usage?.completion_tokens) words.push(count(usage.completion_tokens, "token"));
  if (timings?.ttft_ms) words.push(gettext("%(time)s to first", { time: seconds(timings.ttft_ms / 1000) }));
  // After an interruption the time is that of the last process only, and the tokens are all.
  if (usage?.completion_tokens && timings?.decode_ms && !resumed) {
    words.push(`${rate(usage.completion_tokens / (timings.decode_ms / 1000))}`);
  }
  if (timings?.engine_ms && !resumed) words.push(gettext("%(time)s of the engine", { time: engineTime(timings.engine_ms) }));
  if (timings?.stop_ms) words.push(gettext("stopped in %(ms)s ms", { ms: Math.ceil(timings.stop_ms) }));
  if (resumed) words.push(gettext("resumed"));
  return words.filter(Boolean).map((part) => isolated(unbroken(part))).join(" · ");
}

/**
 * A figure and its unit stay on one line.
 * @param {string} words
 */
function unbroken(words) {
  return words.replaceAll(" ", "\u00a0");
}

/**
 * How an answer ended, where it did not end by itself. Null for a complete one.
 * @param {{status: string, finish_reason?: string, error?: any}} answer
 */
export function endLine({ status, finish_reason, error }) {
  if (status === "deleted") return gettext("This answer was deleted.");
  if (status === "stopped") return gettext("You stopped this answer.");
  if (status === "refused") return error?.message ?? gettext("This answer was refused.");
  if (status === "failed") {
    return `${error?.message ?? gettext("The answer could not be finished.")} ${gettext("What was written is kept.")}`;
  }
  if (finish_reason === "content_filter") return gettext("This answer was refused.");
  if (finish_reason === "length") return gettext("The answer ends here because it reached its length limit.");
  return null;
}

/**
 * What has become of an answer in a chat that is not shown; null where its reader ended it.
 * @param {{title: string, last_answer?: string | null}} conversation
 */
export function newsLine({ title, last_answer: status }) {
  const values = { title: title || gettext("New chat") };
  if (status === "stopped") return null;
  if (status === "failed") return gettext("The answer in “%(title)s” could not be finished.", values);
  if (status === "refused") return gettext("The answer in “%(title)s” was refused.", values);
  return gettext("“%(title)s” has been answered.", values);
}

/**
 * What is said of a model's reasoning. `ms` null: nobody knows how long it took.
 * @param {{isLive: boolean, ms: number | null}} thought
 */
export function thoughtLine({ isLive, ms }) {
  const time = ms === null ? "" : seconds(Math.round(ms / 1000));
  if (isLive) return time ? `${gettext("Thinking")} · ${time}` : gettext("Thinking");
  if (ms === null) return gettext("Thought");
  return ms < 1000 ? gettext("Thought briefly") : gettext("Thought for %(time)s", { time });
}

/**
 * A tool call in a line: the name, what it was given, what it gave back.
 * @param {{name: string, arguments: string}} call
 * @param {{content: string, is_error: boolean} | null} result null while it works
 */
export function toolLine(call, result) {
  const given = short(argumentsLine(call.arguments));
  const name = toolName(call.name);
  const outcome = result ? ` → ${short(result.content)}` : "";
  return `${given ? `${name} · ${given}` : name}${outcome}`;
}

/** @param {string} name @returns {string} of those of every site in the reader's language, of others as they are called */
export function toolName(name) {
  if (name === "calculator") return gettext("Calculator");
  if (name === "clock") return gettext("Clock");
  if (name === "remember") return gettext("Memory");
  if (name === "create_image") return gettext("Picture");
  const at = name.indexOf("__"); // of a tool server: its name, and the tool's
  if (at > 0) return `${name.slice(0, at)} · ${name.slice(at + 2).replaceAll("_", " ")}`;
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

/** @param {string} json */
function argumentsLine(json) {
  try {
    const values = Object.values(JSON.parse(json));
    return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(", ");
  } catch {
    return json; // a model may write what is no JSON; then this is the truth
  }
}

/** @param {string} text */
function short(text) {
  const one = text.replace(/\s+/g, " ").trim();
  return one.length > MAX_TOOL_CHARS ? `${one.slice(0, MAX_TOOL_CHARS - 1)}…` : one;
}

/** @param {number} value */
export function seconds(value) {
  if (value < 90) return gettext("%(n)s s", { n: value < 10 ? tenths.format(value) : Math.round(value) });
  return gettext("%(n)s min", { n: Math.round(value / 60) });
}

/**
 * A request's share of the engine's time, with as many digits as say something.
 * @param {number} ms
 */
export function engineTime(ms) {
  const figure = ms >= 10_000 ? Math.round(ms / 1000) : twoDigits.format(ms / 1000);
  return gettext("%(n)s s", { n: figure });
}

/** @param {number} number */
export function thousands(number) {
  return whole.format(number);
}

/** @param {number} perSecond */
export function rate(perSecond) {
  return gettext("%(n)s tokens/s", { n: perSecond < 10 ? oneTenth.format(perSecond) : whole.format(perSecond) });
}

/** @param {number} fraction */
export function percent(fraction) {
  return percents.format(fraction ?? 0);
}

/** What is full or used, and not rounded up to what it is not yet. @param {number} fraction */
export function percentReached(fraction) {
  return percent(Math.floor(fraction * 100) / 100);
}

/** @param {number} position */
function ordinal(position) {
  const text = gettext("%(n)sth"); // languages with one way to say it translate this
  const n = whole.format(position);
  return filled(text === "%(n)sth" ? SUFFIXES[ordinals.select(position)] : text, { n });
}

/** @type {Record<string, (number: number) => string>} */
const COUNTS = {
  token: (number) => ngettext("%(n)s token", "%(n)s tokens", number),
  message: (number) => ngettext("%(n)s message", "%(n)s messages", number),
  chat: (number) => ngettext("%(n)s chat", "%(n)s chats", number),
  entry: (number) => ngettext("%(n)s entry", "%(n)s entries", number),
  time: (number) => ngettext("once", "%(n)s times", number),
};

/**
 * @param {number} number
 * @param {"token" | "message" | "chat" | "entry" | "time"} noun
 */
export function count(number, noun) {
  return COUNTS[noun](number);
}

/**
 * The heading under which a conversation of that day is listed.
 * @param {string} iso
 * @param {Date} [now]
 */
export function dayGroup(iso, now = new Date()) {
  const date = new Date(iso);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  if (date.getTime() >= midnight) return gettext("Today");
  if (date.getTime() >= midnight - DAY_MS) return gettext("Yesterday");
  if (date.getTime() >= midnight - 7 * DAY_MS) return gettext("Previous 7 days");
  const month = date.toLocaleString(LOCALE, { month: "long" });
  return date.getFullYear() === now.getFullYear() ? month : `${month} ${date.getFullYear()}`;
}

/**
 * A day in few letters, with its year where it is another one.
 * @param {string} iso
 * @param {Date} [now]
 */
export function shortDate(iso, now = new Date()) {
  const date = new Date(iso);
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(LOCALE, { day: "numeric", month: "short", year });
}

/** @param {string} iso */
export function fullDate(iso) {
  return new Date(iso).toLocaleString(LOCALE, { dateStyle: "full", timeStyle: "short" });
}
