// @ts-check
/** Small helpers for the DOM. None of them takes HTML. */

import { gettext } from "./i18n.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children; strings become text.
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} [children]
 * @returns {HTMLElement}
 */
export function element(name, attributes = {}, children = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/**
 * An icon of the sprite in the page (templates/_icons.svg).
 * @param {string} name
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/**
 * What must be there because our own template has it.
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {any}
 */
export function find(root, selector) {
  const found = root.querySelector(selector);
  if (!found) throw new Error(`the page has no ${selector}`);
  return found;
}

/**
 * A click that means what is clicked, and no other tab, window or file.
 * @param {MouseEvent} event
 */
export function isPlainClick(event) {
  return !(event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}

/** Safari ends composing before the Enter that ended it: 229. @param {KeyboardEvent} event */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/**
 * Set text only when it differs, so that a selection in it survives.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Who draws the inside of an element: morphing lets it `take` over what another one would draw,
 * and leaves the inside alone.
 * @typedef {{take: (other: any) => boolean, draw: (isFinal: boolean) => void}} Drawer
 * @type {WeakMap<Node, Drawer>}
 */
const drawers = new WeakMap();

/**
 * @param {Element} root
 * @param {Drawer} drawer
 */
export function setDrawer(root, drawer) {
  drawers.set(root, drawer);
}

/** @param {Node | null} node */
export function drawerOf(node) {
  return node ? drawers.get(node) : undefined;
}

/**
 * Make the children of `target`, from number `first` on, equal to those of `source`. Nodes that stay
 * the same are left alone and growing text is appended to, so that selections and focus survive.
 * @param {Node} target
 * @param {Node} source
 * @param {number} [first]
 */
export function morphChildren(target, source, first = 0) {
  const wanted = [...source.childNodes];
  const present = [...target.childNodes].slice(first);
  wanted.forEach((node, index) => {
    const old = present[index];
    if (!old) target.appendChild(node);
    else if (!morph(old, node)) target.replaceChild(node, old);
  });
  for (const old of present.slice(wanted.length)) target.removeChild(old);
}

/**
 * @param {Node} old
 * @param {Node} wanted
 * @returns {boolean} whether `old` could be made equal
 */
function morph(old, wanted) {
  if (old.nodeName !== wanted.nodeName) return false;
  const [drawer, other] = [drawers.get(old), drawers.get(wanted)];
  if (drawer || other) return drawer?.constructor === other?.constructor && Boolean(drawer?.take(other));
  if (old instanceof Text && wanted instanceof Text) {
    if (wanted.data.startsWith(old.data)) old.appendData(wanted.data.slice(old.length));
    else old.data = wanted.data;
    return true;
  }
  if (old instanceof Element && wanted instanceof Element) morphAttributes(old, wanted);
  morphChildren(old, wanted);
  return true;
}

/**
 * @param {Element} old
 * @param {Element} wanted
 */
function morphAttributes(old, wanted) {
  for (const { name, value } of [...wanted.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  }
}

/**
 * Put text on the clipboard; also where the page is not a secure context (a plain http host). Throws
 * where the browser does not allow it.
 * @param {string} text
 */
export async function copyText(text) {
  const isThere = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (isThere) return;
  const field = /** @type {HTMLTextAreaElement} */ (element("textarea", { class: "visually-hidden" }));
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  field.value = text;
  (focused?.closest("dialog[open]") ?? document.body).append(field); // behind a dialog nothing is selected
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  if (!isCopied) throw new Error(gettext("The browser did not allow copying."));
}

/**
 * Have the browser save what an address sends, without leaving the page.
 * @param {string} href
 */
export function download(href) {
  const link = element("a", { href, download: "" });
  document.body.append(link);
  link.click();
  link.remove();
}
