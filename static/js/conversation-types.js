// @ts-check
/**
 * What conversations and messages are to the page. Types alone: no browser loads this.
 *
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{id: string, url: string, title: string, model: string, version: number,
 *   created_at: string, updated_at: string, running: string[], folder: string | null,
 *   tags: string[], pinned: boolean, archived: boolean, unread: boolean, last_answer?: string | null}} Conversation
 * @typedef {object} Message
 * @property {string} id
 * @property {string | null} parent
 * @property {"user" | "assistant"} role
 * @property {"sending" | "running" | "complete" | "stopped" | "refused" | "failed" | "deleted"} status
 * @property {string} text
 * @property {Part[]} parts
 * @property {string} model
 * @property {string | null} run
 * @property {number} chosen the conversation's version when this branch was last chosen
 * @property {string} created_at
 * @property {string} [finish_reason]
 * @property {import("./run-state.js").RunError | null} [error]
 * @property {import("./run-state.js").Usage | null} [usage]
 * @property {import("./run-state.js").Timings | null} [timings]
 * @property {boolean} [resumed] its process died, and another went on
 * @property {boolean} [edited] a person wrote it over another answer
 * @property {import("./left-out.js").LeftOut | null} [left_out] what the model was not shown
 * @property {import("./sources.js").Sources | null} [sources] what a question is answered from
 * @property {import("./run-state.js").FromCache | null} [from_cache] when it was given first
 * @property {import("./sources.js").Found | null} [found] what an answer was written from
 * @property {import("./feedback.js").Feedback | null} [feedback] what the reader thinks of an answer
 * @property {boolean} [is_pinned] the model is shown it however long the chat gets
 * @property {string} [key] names the message on the screen while its id is not known yet
 *
 * @typedef {{type: "message.send", client_id: string, conversation: string | null,
 *   parent: string | null, text: string, model: string | null, beside?: string[],
 *   sources?: import("./sources.js").SourceIds}} SendFrame
 * @typedef {{type: "answer.regenerate" | "answer.continue", client_id: string, answer: string,
 *   model?: string | null, wish?: string | null, without?: number[]}} RetakeFrame
 * @typedef {SendFrame | RetakeFrame} AskFrame what begins an answer
 * @typedef {object} Accepted
 * @property {string} client_id
 * @property {Conversation | null} conversation
 * @property {Message} [message] the question, if it was sent too
 * @property {Message} answer
 * @property {Message[]} [answers] all of them, if there are several
 */

export {};
