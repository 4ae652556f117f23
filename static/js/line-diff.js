// @ts-check
/** What has changed from one text to another, line by line. Pure. */

/**
 * @typedef {{kind: "same" | "added" | "removed", text: string}} Line
 * @typedef {Line | {kind: "left-out", count: number}} Shown
 */

/** Longest common subsequences take the product of both lengths; beyond it the middle is replaced as a whole. */
const MAX_CELLS = 4_000_000;
const AROUND = 3;

/**
 * @param {string} before
 * @param {string} after
 * @returns {Line[]}
 */
export function lineDiff(before, after) {
  const [old, wanted] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < wanted.length && old[start] === wanted[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, wanted.length) - start;
  while (end < most && old[old.length - 1 - end] === wanted[wanted.length - 1 - end]) end += 1;
  return [
    ...lines("same", old.slice(0, start)),
    ...middle(old.slice(start, old.length - end), wanted.slice(start, wanted.length - end)),
    ...lines("same", old.slice(old.length - end)),
  ];
}

/**
 * Without what is the same, but for some lines around what is not.
 * @param {Line[]} diff
 * @returns {Shown[]}
 */
export function folded(diff) {
  const isNear = new Uint8Array(diff.length);
  diff.forEach(({ kind }, index) => {
    if (kind !== "same") isNear.fill(1, Math.max(0, index - AROUND), index + AROUND + 1);
  });
  /** @type {Shown[]} */
  const shown = [];
  let count = 0;
  diff.forEach((line, index) => {
    if (!isNear[index]) return void (count += 1);
    if (count) shown.push({ kind: "left-out", count });
    count = 0;
    shown.push(line);
  });
  if (count) shown.push({ kind: "left-out", count });
  return shown;
}

/**
 * What is removed stands before what is added in its place.
 * @param {string[]} old
 * @param {string[]} wanted
 * @returns {Line[]}
 */
function middle(old, wanted) {
  if (old.length * wanted.length > MAX_CELLS) return [...lines("removed", old), ...lines("added", wanted)];
  const width = wanted.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width); // of what is common behind each pair of lines
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = wanted.length - 1; column >= 0; column--) {
      const at = row * width + column;
      lengths[at] = old[row] === wanted[column] ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  /** @type {Line[]} */
  const diff = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < wanted.length) {
    const at = row * width + column;
    if (row < old.length && column < wanted.length && old[row] === wanted[column]) {
      diff.push({ kind: "same", text: old[row++] });
      column += 1;
    } else if (column === wanted.length || (row < old.length && lengths[at + width] >= lengths[at + 1])) {
      diff.push({ kind: "removed", text: old[row++] });
    } else diff.push({ kind: "added", text: wanted[column++] });
  }
  return diff;
}

/** @param {Line["kind"]} kind @param {string[]} texts @returns {Line[]} */
function lines(kind, texts) {
  return texts.map((text) => ({ kind, text }));
}

/** @param {string} text */
function linesOf(text) {
  return text ? text.replace(/\n$/, "").split("\n") : [];
}
