// @ts-check
/**
 * A conversation's messages as a tree: which siblings there are, and which branch is shown. Pure; the
 * server's branches.py does the same.
 *
 * Of siblings the one with the highest `chosen` is shown. Answers that share it were asked for side by
 * side and wait for a choice: the first of them stands for all. Where nobody ever chose (all 0, as in
 * chats from elsewhere) the last one is shown.
 *
 * @typedef {import("./conversation-store.js").Message} Message
 * @typedef {Map<string | null, Message[]>} Children siblings by their parent, oldest first
 */

/**
 * @param {Iterable<Message>} messages oldest first
 * @returns {Children}
 */
export function childrenOf(messages) {
  /** @type {Children} */
  const children = new Map();
  for (const message of messages) {
    const siblings = children.get(message.parent);
    if (siblings) siblings.push(message);
    else children.set(message.parent, [message]);
  }
  return children;
}

/**
 * The answers among siblings that were asked for side by side, while none of them is chosen.
 * @param {Message[]} siblings
 * @returns {Message[]} none, or at least two
 */
export function undecided(siblings) {
  const tied = newest(siblings);
  const isAnswers = tied.every(({ role, chosen }) => role === "assistant" && chosen > 0);
  return tied.length > 1 && isAnswers ? tied : [];
}

/**
 * The sibling that is shown.
 * @param {Message[]} siblings at least one
 */
export function chosenOf(siblings) {
  return undecided(siblings)[0] ?? /** @type {Message} */ (newest(siblings).at(-1));
}

/**
 * Ids from the first message to the end of the shown branch.
 * @param {Children} children
 * @param {Set<string>} [held] messages that stay on the path, whatever is chosen
 */
export function chosenPath(children, held) {
  /** @type {string[]} */
  const path = [];
  for (;;) {
    const siblings = children.get(path.at(-1) ?? null);
    if (!siblings) return path;
    const kept = held && siblings.find(({ id }) => held.has(id));
    path.push((kept ?? chosenOf(siblings)).id);
  }
}

/**
 * A message and all in front of it, the first message first.
 * @param {Map<string, Message>} messages
 * @param {string | null} id
 */
export function pathTo(messages, id) {
  /** @type {Message[]} */
  const path = [];
  for (let at = id; at !== null; ) {
    const message = messages.get(at);
    if (!message) break;
    path.push(message);
    at = message.parent;
  }
  return path.reverse();
}

/** @param {Message[]} siblings */
function newest(siblings) {
  const highest = Math.max(...siblings.map(({ chosen }) => chosen));
  return siblings.filter(({ chosen }) => chosen === highest);
}
