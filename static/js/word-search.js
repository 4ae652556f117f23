// @ts-check
/** Finding texts by words, as people remember them. */

/**
 * Small letters without their marks: "Schlüssel" is found by "schlussel".
 * @param {string} text
 */
export function folded(text) {
  return text.normalize("NFKD").replace(/\p{M}+/gu, "").toLowerCase();
}

/**
 * Which texts have all words of `wanted`, wherever in their own; none for no words.
 * @param {string} wanted
 * @param {string[]} texts
 * @returns {boolean[]}
 */
export function matches(wanted, texts) {
  const words = folded(wanted).split(/\s+/).filter(Boolean);
  return texts.map((text) => {
    const own = folded(text);
    return words.length > 0 && words.every((word) => own.includes(word));
  });
}
