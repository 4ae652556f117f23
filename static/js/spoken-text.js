// @ts-check
/** What of an answer is read aloud: no code, no drawings and no formulas, which would come letter by letter. */

const LEFT_OUT = "pre, table.sources, .math--display, svg, img, button, sup";
const CITATION = /\s?\[\d{1,3}(?:,\s*\d{1,3})*\]/g;
const SPEAKABLE = /^[\p{L}\p{N}\s.,=+\-<>%()]*$/u; // of a formula: others are TeX

/**
 * @param {ParentNode & Node} root what markdown became; it is changed
 * @returns {string} paragraphs, each in a line
 */
export function spokenText(root) {
  for (const node of root.querySelectorAll(LEFT_OUT)) node.remove();
  for (const math of root.querySelectorAll(".math")) {
    if (!SPEAKABLE.test(math.textContent ?? "")) math.remove();
  }
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) /** @type {Text} */ (texts.currentNode).data = /** @type {Text} */ (texts.currentNode).data.replace(/\s+/g, " ");
  for (const cell of root.querySelectorAll("td, th")) cell.append(", ");
  for (const block of root.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, tr, br, blockquote")) block.append("\n");
  for (const line of root.querySelectorAll("br")) line.replaceWith("\n");
  const lines = (root.textContent ?? "").replace(CITATION, "").split("\n");
  return lines.map((line) => line.replace(/\s+/g, " ").replace(/,\s*$/, "").trim()).filter((line) => /[\p{L}\p{N}]/u.test(line)).join("\n");
}
