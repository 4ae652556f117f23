// @ts-check
/**
 * The parts of a message, in the order they were said (docs/socket.md). Pure functions on values.
 *
 * @typedef {{type: "text" | "reasoning", text: string}} WrittenPart
 * @typedef {{type: "tool_call", id: string, name: string, arguments: string}} ToolCallPart
 * @typedef {{type: "tool_result", id: string, content: string, is_error: boolean,
 *   took_ms?: number}} ToolResultPart
 * @typedef {WrittenPart | ToolCallPart | ToolResultPart} Part
 */

import { countCodePoints, takeCodePoints } from "./code-points.js";

/**
 * `parts` with `text` added at the end: to the last part when it is of the same kind.
 * @param {Part[]} parts
 * @param {"text" | "reasoning"} type
 * @param {string} text
 * @returns {Part[]}
 */
export function appendText(parts, type, text) {
  if (!text) return parts;
  const last = parts.at(-1);
  if (last?.type === type) return [...parts.slice(0, -1), { type, text: last.text + text }];
  return [...parts, { type, text }];
}

/**
 * All answer text of a message, without reasoning and tools.
 * @param {Part[]} parts
 */
export function textOf(parts) {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** @param {Part[]} parts */
export function countText(parts) {
  return countCodePoints(textOf(parts));
}

/**
 * `parts` with the answer text cut to `chars` code points. Reasoning and tools stay: they happened.
 * @param {Part[]} parts
 * @param {number} chars
 * @returns {Part[]}
 */
export function clampText(parts, chars) {
  let left = chars;
  /** @type {Part[]} */
  const kept = [];
  for (const part of parts) {
    if (part.type !== "text") {
      kept.push(part);
      continue;
    }
    const text = takeCodePoints(part.text, left);
    left -= countCodePoints(text);
    if (text) kept.push({ type: "text", text });
  }
  return kept;
}
