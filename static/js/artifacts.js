// @ts-check
/**
 * What a chat makes as code, each in the versions that its answers have given. Pure.
 *
 * @typedef {object} Version
 * @property {string} message whose answer has it
 * @property {number} number of the block in that answer, from 0
 * @property {string} language as the fence names it
 * @property {string} text
 * @property {boolean} isWhole nothing will be added to it
 *
 * @typedef {Version[]} Artifact its versions, oldest first; at least one
 */

/** So much of the longer one has to be in both: a part that is shown to be changed is no version of the whole. */
const MIN_SHARE = 0.3;
const MIN_LINES = 3; // what has fewer yet says nothing about what it will be
const TITLES = new Map([
  ["html", /<title[^>]*>([^<]+)<\/title/i], ["svg", /<title[^>]*>([^<]+)<\/title/i],
  ["markdown", /^# +(.+)$/m], ["md", /^# +(.+)$/m],
]);

/**
 * What belongs together, in the order of its first versions.
 * @param {Version[]} blocks of the shown branch, in order
 * @returns {Artifact[]}
 */
export function artifactsOf(blocks) {
  /** @type {Artifact[]} */
  const artifacts = [];
  for (const block of blocks) {
    const before = artifacts.findLast((versions) => goesOn(/** @type {Version} */ (versions.at(-1)), block));
    if (before) before.push(block);
    else artifacts.push([block]);
  }
  return artifacts;
}

/**
 * What a block calls itself; empty where it does not.
 * @param {Pick<Version, "language" | "text">} block
 */
export function titleIn({ language, text }) {
  return TITLES.get(language.toLowerCase())?.exec(text)?.[1].trim().slice(0, 120) ?? "";
}

/**
 * @param {Version} before
 * @param {Version} block
 */
function goesOn(before, block) {
  if (before.language.toLowerCase() !== block.language.toLowerCase()) return false;
  const [title, other] = [titleIn(before), titleIn(block)];
  if (title && other) return title === other || share(before, block) > 2 * MIN_SHARE;
  return share(before, block) >= MIN_SHARE;
}

/**
 * How much of them is the same, 0 to 1; of what is still being written, how much of it so far.
 * @param {Version} before
 * @param {Version} block
 */
function share(before, block) {
  const [ours, theirs] = [linesOf(before.text), linesOf(block.text)];
  if (!block.isWhole && theirs.size < MIN_LINES) return 0;
  const numSame = [...theirs].filter((line) => ours.has(line)).length;
  const size = block.isWhole ? Math.max(ours.size, theirs.size) : theirs.size;
  return size ? numSame / size : 0;
}

/** Lines that say something: others are in everything. @param {string} text */
function linesOf(text) {
  return new Set(text.split("\n").map((line) => line.trim()).filter((line) => /\w{2}/.test(line)));
}
