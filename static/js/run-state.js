// @ts-check
/**
 * A run as this reader knows it: a pure reducer from numbered events to the parts of the answer.
 * It knows no socket and no DOM. Events count 1, 2, 3 …: one seen before is a duplicate, one that
 * skips a number is a gap and means "follow again from `seq`".
 *
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{prompt_tokens: number, cached_tokens: number, completion_tokens: number}} Usage
 * @typedef {{queued_ms: number, prefill_ms: number, ttft_ms: number, decode_ms: number,
 *   tools_ms: number, total_ms: number, stop_ms: number}} Timings
 * @typedef {{code: string, message: string, retry_after_s?: number | null, trace_id?: string | null}} RunError
 * @typedef {"running" | "complete" | "stopped" | "refused" | "failed"} Status
 * @typedef {{asked_at: string, question: string, similarity: number}} FromCache
 * @typedef {object} RunState
 * @property {string} run
 * @property {string} message id of the answer
 * @property {number} seq of the last event that was applied
 * @property {Status} status
 * @property {Part[]} parts
 * @property {{text: number, reasoning: number}} counted code points so far, per kind of part
 * @property {string} model
 * @property {import("./left-out.js").LeftOut | null} leftOut what the model is not shown
 * @property {import("./sources.js").Found | null} found in documents, before it was begun
 * @property {FromCache | null} fromCache it was given before
 * @property {boolean} resumed whether another process had to go on with it
 * @property {string} finishReason
 * @property {RunError | null} error
 * @property {Usage | null} usage
 * @property {Timings | null} timings
 *
 * @typedef {{kind: string, [field: string]: any}} RunEvent
 * @typedef {"applied" | "duplicate" | "gap"} Outcome
 */

import { countCodePoints, dropCodePoints } from "./code-points.js";
import { appendText, clampText } from "./parts.js";

/**
 * @param {string} run
 * @param {string} message
 * @returns {RunState}
 */
export function newRun(run, message) {
  return {
    run,
    message,
    seq: 0,
    status: "running",
    parts: [],
    counted: { text: 0, reasoning: 0 },
    model: "",
    resumed: false,
    leftOut: null,
    found: null,
    fromCache: null,
    finishReason: "",
    error: null,
    usage: null,
    timings: null,
  };
}

/**
 * The state after event number `seq`, and what became of it.
 * @param {RunState} state
 * @param {number} seq
 * @param {RunEvent} event
 * @returns {{state: RunState, outcome: Outcome}}
 */
export function applyEvent(state, seq, event) {
  if (seq <= state.seq) return { state, outcome: "duplicate" };
  if (seq > state.seq + 1) return { state, outcome: "gap" };
  return { state: { ...state, ...changeBy(state, event), seq }, outcome: "applied" };
}

/**
 * @param {RunState} state
 * @param {RunEvent} event
 * @returns {Partial<RunState>}
 */
function changeBy(state, event) {
  switch (event.kind) {
    case "started":
      return { model: event.model };
    case "found": {
      const { query, excerpts, is_whole, num_waiting = 0, num_failed = 0 } = event;
      return { found: { query, excerpts, is_whole, num_waiting, num_failed } };
    }
    case "from_cache": {
      const { asked_at, question, similarity } = event;
      return { fromCache: { asked_at, question, similarity } };
    }
    case "left_out": {
      const { before, num_messages, summary } = event;
      return { leftOut: { before, num_messages, summary } };
    }
    case "delta":
      return addDelta(state, event);
    case "tool_call": {
      const { id, name } = event;
      return { parts: [...state.parts, { type: "tool_call", id, name, arguments: event.arguments }] };
    }
    case "tool_result": {
      const { id, content, is_error, took_ms } = event;
      return { parts: [...state.parts, { type: "tool_result", id, content, is_error, took_ms }] };
    }
    case "resumed":
      return { resumed: true };
    case "finished":
      return { status: "complete", finishReason: event.reason, ...measured(event) };
    case "stopped":
      return {
        status: "stopped",
        parts: clampText(state.parts, event.chars),
        ...measured(event),
      };
    case "refused": {
      const { code, message, stage, decision, removes } = event;
      const error = { code, message, stage, decision };
      return { status: "refused", error, ...(removes ? { parts: [] } : {}) };
    }
    case "failed": {
      const { code, message, retry_after_s, trace_id } = event;
      return { status: "failed", error: { code, message, retry_after_s, trace_id } };
    }
    default:
      return {}; // an event of a newer server: it has its number and nothing that we can show
  }
}

/**
 * A process that took the run over may repeat characters; the offset says which are new.
 * @param {RunState} state
 * @param {RunEvent} event
 */
function addDelta(state, event) {
  const part = event.part === "reasoning" ? "reasoning" : "text";
  const before = state.counted[part];
  const text = dropCodePoints(event.text, before - event.offset);
  const counted = { ...state.counted, [part]: before + countCodePoints(text) };
  return { parts: appendText(state.parts, part, text), counted };
}

/** @param {RunEvent} event */
function measured(event) {
  return { usage: event.usage ?? null, timings: event.timings ?? null };
}

/** @param {RunState} state */
export function hasEnded(state) {
  return state.status !== "running";
}
