// @ts-check
/** Whether a chat is warm: how much of it the engine need not read again. Pure. */

import { gettext } from "./i18n.js";
import { thousands } from "./words.js";

/**
 * @param {{tokens: number, cached: number} | undefined} chat of GET /api/warmth
 * @returns {{state: "warm" | "cold", words: string} | null} null where nothing is known
 */
export function warmthOf(chat) {
  if (!chat) return null;
  const { tokens, cached } = chat;
  if (2 * cached < tokens) return { state: "cold", words: gettext("Cold: the engine will read this chat again") };
  const words = gettext("Warm: %(cached)s of %(tokens)s tokens need not be read again", { cached: thousands(cached), tokens: thousands(tokens) });
  return { state: "warm", words };
}
