// @ts-check
/**
 * Formulas for markdown-it: $…$ and \(…\) in a line, $$…$$ and \[…\] on their own. The text of a
 * formula stays text here, in an element of class "math"; math.js draws it. Dollars are also money,
 * so a single one opens a formula only where no price, no variable of a shell and no gap says no.
 */

const MAX_INLINE_CHARS = 2000;
const ENDS = { "$$": "$$", "\\[": "\\]" };
/** "5 or 6", "20 million people": a number and words, and no sign that only a formula has. */
const IS_MONEY = /^[\d.,\s]+[-–]?\s*[a-z]{2,}/i;
const HAS_SIGN = /[\\^_=<>{}|+*/]/;
const MAY_FOLLOW = /^(?:[^\p{L}\p{N}$]|(?:th|st|nd|rd|s)(?!\p{L}))/u; // the $n$th of the $x$s

/** @param {any} markdown */
export function mathSyntax(markdown) {
  markdown.inline.ruler.before("escape", "math", inlineMath);
  markdown.block.ruler.before("fence", "math_block", mathBlock, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  const { escapeHtml } = markdown.utils;
  const rendered = (/** @type {string} */ name, /** @type {string} */ className) =>
    (/** @type {any[]} */ tokens, /** @type {number} */ index) =>
      `<${name} class="${className}">${escapeHtml(tokens[index].content)}</${name}>`;
  markdown.renderer.rules.math = rendered("span", "math");
  markdown.renderer.rules.math_display = rendered("span", "math math--display");
  markdown.renderer.rules.math_block = (/** @type {any[]} */ tokens, /** @type {number} */ index) =>
    `${rendered("p", "math math--display")(tokens, index)}\n`;
}

/**
 * @param {any} state of markdown-it's inline parser
 * @param {boolean} isSilent
 */
function inlineMath(state, isSilent) {
  const { src, pos, posMax } = state;
  const found = formulaAt(src.slice(0, posMax), pos);
  if (!found) return false;
  if (!isSilent) {
    state.push(found.isDisplay ? "math_display" : "math", "", 0).content = found.tex;
  }
  state.pos = found.end;
  return true;
}

/**
 * The formula that begins at `start`, with the index behind it; null where there is none. Pure.
 * @param {string} text
 * @param {number} start
 */
export function formulaAt(text, start) {
  if (text.startsWith("$$", start)) return delimited(text, start, "$$", "$$", true);
  if (text[start] === "$") return dollars(text, start);
  if (text.startsWith("\\(", start)) return delimited(text, start, "\\(", "\\)", false);
  if (text.startsWith("\\[", start)) return delimited(text, start, "\\[", "\\]", true);
  return null;
}

/**
 * @param {string} text
 * @param {number} start
 * @param {string} open
 * @param {string} close
 * @param {boolean} isDisplay
 */
function delimited(text, start, open, close, isDisplay) {
  if (open === "$$" && text[start + 2] === "$") return null;
  const from = start + open.length;
  const end = endOf(text, from, close);
  if (end < 0) return null;
  const tex = text.slice(from, end).trim();
  if (!tex || (open === "$$" && isWords(tex))) return null;
  return { tex, isDisplay, end: end + close.length };
}

/**
 * @param {string} text
 * @param {number} start
 */
function dollars(text, start) {
  if (/[\p{L}\p{N}$]/u.test(text[start - 1] ?? "") || /\s|\$|^$/.test(text[start + 1] ?? "")) return null;
  for (let end = start; ; ) {
    end = endOf(text, end + 1, "$");
    if (end < 0) return null;
    const tex = text.slice(start + 1, end);
    if (/\s$/.test(tex)) return null; // the next dollar opens something of its own
    if (!MAY_FOLLOW.test(`${text.slice(end + 1, end + 4)} `)) return null;
    return IS_MONEY.test(tex) && !HAS_SIGN.test(tex) ? null : { tex, isDisplay: false, end: end + 1 };
  }
}

/**
 * Where `close` stands next, not escaped and not too far; -1 if it does not.
 * @param {string} text
 * @param {number} from
 * @param {string} close
 */
function endOf(text, from, close) {
  const limit = Math.min(text.length, from + MAX_INLINE_CHARS);
  for (let index = from; index < limit; index += 1) {
    if (text.startsWith(close, index)) return index;
    if (text[index] === "\\") index += 1;
    if (text[index] === "`" && close === "$") return -1; // code is stronger
  }
  return -1;
}

/** "$$ or" of a price range. @param {string} tex */
function isWords(tex) {
  return /^\p{L}{2,}(\s+\p{L}+)*[.,;:]?$/u.test(tex);
}

/**
 * A formula over several lines. While a text still grows (`env.isOpen`), one that has no end yet
 * counts as well, unless a blank line says that it was none.
 * @param {any} state of markdown-it's block parser
 * @param {number} startLine
 * @param {number} endLine
 * @param {boolean} isSilent
 */
function mathBlock(state, startLine, endLine, isSilent) {
  if (state.sCount[startLine] - state.blkIndent >= 4) return false;
  const first = lineOf(state, startLine);
  const open = /** @type {"$$" | "\\["} */ (first.slice(0, 2));
  const close = ENDS[open];
  if (!close || first[2] === "$") return false;
  const last = lastLineOf(state, startLine, endLine, close);
  if (!last) return false;
  if (isSilent) return true;
  const lines = [first.slice(2), ...between(state, startLine + 1, last.line + 1)].join("\n");
  const token = state.push("math_block", "", 0);
  token.content = (last.isClosed ? lines.slice(0, lines.lastIndexOf(close)) : lines).trim();
  token.map = [startLine, last.line + 1];
  token.block = true;
  token.meta = { isOpen: !last.isClosed };
  state.line = last.line + 1;
  return true;
}

/**
 * @param {any} state
 * @param {number} startLine
 * @param {number} endLine
 * @param {string} close
 */
function lastLineOf(state, startLine, endLine, close) {
  for (let line = startLine; line < endLine; line += 1) {
    if (line > startLine && (state.isEmpty(line) || state.sCount[line] < state.blkIndent)) return null;
    const text = line === startLine ? lineOf(state, line).slice(2) : lineOf(state, line);
    const end = text.indexOf(close);
    if (end < 0) continue;
    return end === text.length - close.length && (line > startLine || text.length > 2)
      ? { line, isClosed: true }
      : null; // words behind it: a formula within a paragraph
  }
  return state.env.isOpen && endLine >= state.lineMax ? { line: endLine - 1, isClosed: false } : null;
}

/**
 * @param {any} state
 * @param {number} from
 * @param {number} to
 */
function between(state, from, to) {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => lineOf(state, from + index));
}

/**
 * @param {any} state
 * @param {number} line
 */
function lineOf(state, line) {
  return state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trimEnd();
}

const MAX_TRIES = 8;

/**
 * What may be drawn of a formula that is still being written, the longest first: cut before one of its
 * last commands, that may lack something, and closed there. Pure.
 * @param {string} tex
 */
export function* drawableSoFar(tex) {
  yield tex;
  yield closedSoFar(tex);
  for (let cut = tex.length, tries = 0; cut > 0 && tries < MAX_TRIES; tries += 1) {
    cut = Math.max(0, tex.lastIndexOf("\\", cut - 1));
    yield closedSoFar(tex.slice(0, cut));
  }
}

/**
 * `tex` without what is half at its end, and with what the groups and environments lack.
 * @param {string} tex
 */
function closedSoFar(tex) {
  const whole = tex.replace(/(?:\\[a-zA-Z]*|\\(?:begin|end)\{[^}]*|[\^_&])\s*$/, "");
  /** @type {string[]} */
  const open = [];
  for (const [token, name] of whole.matchAll(/\\begin\{([^}]*)\}|\\end\{[^}]*\}|\\left(?![a-zA-Z])|\\right(?![a-zA-Z])|\\.|[{}]/gs)) {
    if (token.startsWith("\\begin")) open.push(`\\end{${name}}`);
    else if (token === "\\left") open.push("\\right.");
    else if (token === "{") open.push("}");
    else if (token === "}" || token.startsWith("\\end") || token === "\\right") open.pop();
  }
  return whole + open.reverse().join("");
}
