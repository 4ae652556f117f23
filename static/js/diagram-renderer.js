// @ts-check
/**
 * Draws diagrams in a frame that has no origin (sandbox/diagram.js), one after the other. What it says
 * is believed as little as what it draws: sizes and kinds are checked, and the result is a picture,
 * in which nothing runs. A frame that takes too long is thrown away.
 */

import { element } from "./dom.js";
import { gettext } from "./i18n.js";

const LOAD_MS = 30_000;
const DRAW_MS = 5_000;
const MAX_SVG_CHARS = 2_000_000;
const MAX_SIDE_PX = 10_000;

/** @typedef {{svg: string, width: number, height: number}} Picture */

/** @type {HTMLIFrameElement | null} */
let frame = null;
let numAsked = 0;
/** @type {Promise<unknown>} */
let last = Promise.resolve();

/**
 * @param {string} source
 * @param {"light" | "dark"} theme
 * @returns {Promise<Picture>} rejects with the reason, for people
 */
export function drawDiagram(source, theme) {
  const drawn = last.catch(() => {}).then(() => draw(source, theme));
  last = drawn;
  return drawn;
}

/**
 * @param {string} source
 * @param {"light" | "dark"} theme
 */
async function draw(source, theme) {
  const box = frame ?? (await openFrame());
  const id = ++numAsked;
  const answer = heard(box, (data) => data.id === id, DRAW_MS);
  box.contentWindow?.postMessage({ type: "draw", id, source, theme }, "*"); // it has no origin to name
  return pictureOf(await answer);
}

async function openFrame() {
  const box = /** @type {HTMLIFrameElement} */ (element("iframe", {
    sandbox: "allow-scripts", src: "/sandbox/diagram", class: "visually-hidden", tabindex: "-1",
    "aria-hidden": "true", title: gettext("Diagrams"), referrerpolicy: "no-referrer",
  }));
  const isReady = heard(box, (data) => data.type === "ready", LOAD_MS);
  document.body.append(box);
  frame = box;
  await isReady;
  return box;
}

/**
 * The first message of the frame that is meant.
 * @param {HTMLIFrameElement} box
 * @param {(data: any) => boolean} isMeant
 * @param {number} timeoutMs
 * @returns {Promise<any>}
 */
function heard(box, isMeant, timeoutMs) {
  return new Promise((resolve, reject) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("message", listen);
    };
    const listen = (/** @type {MessageEvent} */ { source, data }) => {
      if (source !== box.contentWindow || !data || !isMeant(data)) return;
      done();
      resolve(data);
    };
    const timer = setTimeout(() => {
      done();
      box.remove();
      if (frame === box) frame = null;
      reject(new Error(gettext("It takes too long to draw.")));
    }, timeoutMs);
    addEventListener("message", listen);
  });
}

/**
 * What the frame has said, if it is a picture. Pure.
 * @param {any} data
 * @returns {Picture}
 */
export function pictureOf(data) {
  if (data?.type === "failed") throw new Error(String(data.message).slice(0, 500));
  const { type, svg, width, height } = data ?? {};
  const isSide = (/** @type {unknown} */ side) =>
    typeof side === "number" && side >= 1 && side <= MAX_SIDE_PX;
  const isSvg = typeof svg === "string" && svg.length <= MAX_SVG_CHARS && svg.startsWith("<svg");
  if (type !== "drawn" || !isSvg || !isSide(width) || !isSide(height)) {
    throw new Error(gettext("The drawing is too large."));
  }
  return { svg, width, height };
}
