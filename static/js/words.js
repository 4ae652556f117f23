// @ts-check
/** Every line that is made of numbers: phases, footers, tools, dates. Pure functions, English. */

const LOCALE = "en";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const ordinals = new Intl.PluralRules(LOCALE, { type: "ordinal" });
const SUFFIXES = { zero: "th", one: "st", two: "nd", few: "rd", many: "th", other: "th" };
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
      return line("loading", `Loading the model · ${percent(phase.progress)}${detail}`, phase.progress);
    }
    case "queued": {
      const wait = phase.wait_s == null ? "" : ` · about ${seconds(Math.max(1, Math.round(phase.wait_s)))}`;
      return line("queued", `Queued ${ordinal(phase.position)}${wait}`);
    }
    case "asking":
      return line("asking", `Waiting for ${phase.detail}`);
    case "prefill": {
      const cached = phase.cached ? ` · ${whole.format(phase.cached)} from cache` : "";
      const text = `Reading ${whole.format(phase.done)} of ${whole.format(phase.total)} tokens`;
      return line("prefill", text + cached, phase.total ? phase.done / phase.total : null);
    }
    case "decode":
      return line("decode", phase.tokens_per_s ? `Writing · ${rate(phase.tokens_per_s)}` : "Writing");
    case "tool":
      return line("tool", `Using the ${phase.detail}`);
    case "offline":
      return line("queued", "No connection · the answer goes on as soon as it is back");
    case "starting":
      return line("queued", "Starting");
    default:
      return line("queued", "Sending");
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
 * @param {{model: string, usage?: any, timings?: any, resumed?: boolean}} answer
 */
export function footerLine({ model, usage, timings, resumed }) {
  const words = [model];
  if (usage?.completion_tokens) words.push(count(usage.completion_tokens, "token"));
  if (timings?.ttft_ms) words.push(`${seconds(timings.ttft_ms / 1000)} to first`);
  // After an interruption the time is that of the last process only, and the tokens are all.
  if (usage?.completion_tokens && timings?.decode_ms && !resumed) {
    words.push(`${rate(usage.completion_tokens / (timings.decode_ms / 1000))}`);
  }
  if (timings?.stop_ms) words.push(`stopped in ${Math.ceil(timings.stop_ms)} ms`);
  if (resumed) words.push("resumed after an interruption");
  return words.filter(Boolean).map(unbroken).join(" · ");
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
  if (status === "stopped") return "You stopped this answer.";
  if (status === "refused") return error?.message ?? "This answer was refused.";
  if (status === "failed") {
    return `${error?.message ?? "The answer could not be finished."} What was written is kept.`;
  }
  if (finish_reason === "length") return "The answer ends here because it reached its length limit.";
  return null;
}

/**
 * A tool call in a line: the name, what it was given, what it gave back.
 * @param {{name: string, arguments: string}} call
 * @param {{content: string, is_error: boolean} | null} result null while it works
 */
export function toolLine(call, result) {
  const given = short(argumentsLine(call.arguments));
  const name = call.name.charAt(0).toUpperCase() + call.name.slice(1).replaceAll("_", " ");
  const outcome = result ? ` → ${short(result.content)}` : "";
  return `${given ? `${name} · ${given}` : name}${outcome}`;
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
  if (value < 10) return `${Number(value.toFixed(1))} s`;
  return value < 90 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`;
}

/** @param {number} perSecond */
function rate(perSecond) {
  return `${perSecond < 10 ? perSecond.toFixed(1) : whole.format(perSecond)} tokens/s`;
}

/** @param {number} fraction */
export function percent(fraction) {
  return `${Math.round((fraction ?? 0) * 100)} %`;
}

/** @param {number} position */
function ordinal(position) {
  return `${whole.format(position)}${SUFFIXES[ordinals.select(position)]}`;
}

/**
 * @param {number} number
 * @param {string} noun
 */
function count(number, noun) {
  return `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * The heading under which a conversation of that day is listed.
 * @param {string} iso
 * @param {Date} [now]
 */
export function dayGroup(iso, now = new Date()) {
  const date = new Date(iso);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  if (date.getTime() >= midnight) return "Today";
  if (date.getTime() >= midnight - DAY_MS) return "Yesterday";
  if (date.getTime() >= midnight - 7 * DAY_MS) return "Previous 7 days";
  const month = date.toLocaleString(LOCALE, { month: "long" });
  return date.getFullYear() === now.getFullYear() ? month : `${month} ${date.getFullYear()}`;
}

/** @param {string} iso */
export function fullDate(iso) {
  return new Date(iso).toLocaleString(LOCALE, { dateStyle: "full", timeStyle: "short" });
}
