// @ts-check
/**
 * How full a model's context is, in shares and in words. Pure functions.
 *
 * @typedef {{name: string, tokens: number}} Segment
 * @typedef {{context_tokens: number, prompt_tokens: number, reserve_tokens: number,
 *   segments: Segment[], left_out: {before: string, num_messages: number, is_new: boolean} | null,
 *   is_too_long: boolean}} Meter of POST /api/meter
 */

import { gettext, ngettext } from "./i18n.js";
import { count, percentReached, thousands } from "./words.js";

/** @type {Record<string, [string, string]>} name → words, tone */
const SEGMENTS = {
  system: [gettext("System prompt and tools"), "system"],
  memory: [gettext("Memory"), "memory"],
  documents: [gettext("Documents"), "documents"],
  history: [gettext("This chat so far"), "history"],
  looked_up: [gettext("Documents, up to"), "looked-up"],
  draft: [gettext("Your message"), "draft"],
};
const WARM = 0.8;
const ALARMING = 0.95;

/** @param {Meter} meter @returns {"calm" | "warm" | "alarming"} */
export function levelOf(meter) {
  if (meter.is_too_long || meter.left_out?.is_new) return "alarming";
  const share = fullness(meter);
  return share >= ALARMING ? "alarming" : share >= WARM ? "warm" : "calm";
}

/** @param {Meter} meter of the room that a prompt has */
export function fullness({ prompt_tokens, context_tokens, reserve_tokens }) {
  return prompt_tokens / Math.max(1, context_tokens - reserve_tokens);
}

/**
 * What has to be known before sending. Empty while there is plenty of room.
 * @param {Meter} meter
 */
export function meterWords(meter) {
  const room = meter.context_tokens - meter.reserve_tokens;
  if (meter.is_too_long) {
    return gettext("Too long for this model: %(tokens)s, and there is room for %(room)s.", { tokens: count(meter.prompt_tokens, "token"), room: thousands(room) });
  }
  const percent = percentReached(fullness(meter));
  const { num_messages: number = 0, is_new: isNew = false } = meter.left_out ?? {};
  if (number) {
    if (isNew) {
      return ngettext("The oldest message will be left out, so that this one fits.", "The oldest %(n)s messages will be left out, so that this one fits.", number);
    }
    if (fullness(meter) >= WARM) {
      return ngettext("%(percent)s full. The oldest message is left out already.", "%(percent)s full. The oldest %(n)s messages are left out already.", number, { percent });
    }
    return "";
  }
  if (fullness(meter) >= ALARMING) return gettext("%(percent)s full. Soon the oldest messages will be left out.", { percent });
  return fullness(meter) >= WARM ? gettext("%(percent)s of the room in this model’s context is full.", { percent }) : "";
}

/**
 * The segments in their order, with what is kept for the answer at the end.
 * @param {Meter} meter
 */
export function shares({ context_tokens, segments, reserve_tokens, prompt_tokens, is_too_long }) {
  const shown = is_too_long ? [{ name: "draft", tokens: prompt_tokens }] : segments;
  const rows = shown.map(({ name, tokens }) => {
    const [words, tone] = SEGMENTS[name] ?? [name, "system"];
    return { words, tone, tokens, share: tokens / context_tokens };
  });
  const free = Math.max(0, context_tokens - prompt_tokens - reserve_tokens);
  rows.push({ words: gettext("Free"), tone: "free", tokens: free, share: free / context_tokens });
  rows.push({ words: gettext("Kept for the answer"), tone: "reserve", tokens: reserve_tokens, share: reserve_tokens / context_tokens });
  return rows;
}
