// @ts-check
/**
 * A picture that an answer draws, in the place of the call that does it: its place while it is drawn, then
 * the picture, or why there is none. A page that is only read has the same of templates/chat/_picture.html.
 */

import { contentUrl, pictureUrl } from "./document-links.js";
import { copyText, element, icon, isPlainClick } from "./dom.js";
import { gettext } from "./i18n.js";
import { showLarge } from "./large-picture.js";

const COPIED_MS = 1500;
/** Of what is drawn: width / height by the size that was asked for. @type {Record<string, number>} */
const RATIOS = { square: 1, portrait: 2 / 3, landscape: 3 / 2 };
const SIZES = "(max-width: 34rem) 90vw, 34rem";
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const REFUSED = "error: the user has not allowed this call";

/**
 * @typedef {{picture: string, name: string, prompt: string, width: number, height: number, model?: string,
 *   rewritten?: boolean}} Made as chat/making_pictures.py writes it
 * @typedef {{content: string, is_error: boolean} | null} Outcome
 */

/**
 * @param {HTMLElement} call the call of the tool, as any other is shown
 * @param {{arguments: string}} part
 * @param {Outcome} outcome
 * @param {{isWorking: boolean, isAsking: boolean}} how the answer goes on
 */
export function showMade(call, part, outcome, how) {
  if (!call.isConnected) return;
  const old = call.previousElementSibling?.matches(".made") ? /** @type {HTMLElement} */ (call.previousElementSibling) : null;
  const state = stateOf(outcome, how);
  call.hidden = state !== "";
  if ((old?.dataset.state ?? "") === state) return;
  old?.remove();
  if (!state) return;
  const figure = figureOf(state, part, outcome);
  figure.dataset.state = state;
  call.before(figure);
  const wasDrawing = old?.dataset.state === "drawing";
  if (state === "drawing") say(figure, gettext("Drawing a picture."));
  else if (wasDrawing) say(figure, state === "made" ? gettext("The picture is drawn.") : (figure.firstElementChild?.textContent ?? ""));
}

/** @param {string} state @param {{arguments: string}} part @param {Outcome} outcome */
function figureOf(state, part, outcome) {
  const made = madeIn(outcome);
  if (made) return picture(made);
  const asked = askedIn(part.arguments);
  if (state === "drawing") return drawing(asked);
  const words = state === "failed" ? whyFailed(outcome?.content ?? "") : gettext("This picture was not drawn: the answer ended before.");
  return undrawn(words, asked.prompt);
}

/** "": as any other call. @param {Outcome} outcome @param {{isWorking: boolean, isAsking: boolean}} how */
function stateOf(outcome, { isWorking, isAsking }) {
  if (outcome?.is_error) return "failed";
  if (outcome) return madeIn(outcome) ? "made" : "";
  if (isAsking) return "";
  return isWorking ? "drawing" : "undrawn";
}

/** A chat that was brought along may tell anything. @param {Outcome} outcome @returns {Made | null} */
export function madeIn(outcome) {
  const value = outcome && !outcome.is_error ? parsed(outcome.content) : null;
  if (!ID.test(value?.picture) || typeof value.prompt !== "string") return null;
  const isSized = [value.width, value.height].every((side) => Number.isInteger(side) && side > 0);
  return { ...value, name: String(value.name ?? ""), ...(isSized ? {} : { width: 1024, height: 1024 }) };
}

/** @param {string} json */
function askedIn(json) {
  const value = parsed(json);
  const prompt = typeof value?.prompt === "string" ? value.prompt : "";
  return { prompt, ratio: RATIOS[value?.size] ?? 1 };
}

/** @param {string} json @returns {any} */
function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return null; // a model may write what is no JSON, and an older server another result
  }
}

/** @param {{prompt: string, ratio: number}} asked */
function drawing({ prompt, ratio }) {
  const frame = element("div", { class: "made__frame" }, [icon("image")]);
  frame.style.aspectRatio = String(ratio);
  return shaped(ratio, [frame, element("figcaption", { class: "made__caption" }, [about(prompt, [])])]);
}

/** @param {Made} made */
function picture({ picture: id, name, prompt, width, height, model, rewritten }) {
  const image = imageOf(id, prompt, width, height);
  const frame = element("a", { class: "made__frame", href: pictureUrl(id, 1600), target: "_blank", rel: "noopener", "aria-label": gettext("Open the picture large") }, [image]);
  frame.addEventListener("click", (event) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    showLarge(/** @type {HTMLAnchorElement} */ (frame));
  });
  const words = [model ? gettext("Drawn by %(model)s.", { model }) : "", rewritten ? gettext("Its server has put the prompt like this.") : ""];
  const download = downloadLink(id, name);
  const actions = element("span", { class: "made__actions" }, [copyButton(prompt), download]);
  image.addEventListener("error", async () => {
    const answer = await fetch(pictureUrl(id, 800)).catch(() => null);
    const isGone = answer?.status === 404;
    frame.replaceWith(isGone ? unshown(gettext("This picture is not kept here.")) : unshown(gettext("The picture cannot be loaded now."), () => {
      image.setAttribute("srcset", image.getAttribute("srcset") ?? ""); // asks for it anew
      return frame;
    }));
    if (isGone) download.remove();
  });
  return shaped(width / height, [frame, element("figcaption", { class: "made__caption" }, [about(prompt, words), actions])]);
}

/** @param {string} id @param {string} prompt @param {number} width @param {number} height */
function imageOf(id, prompt, width, height) {
  const srcset = `${pictureUrl(id, 800)} 800w, ${pictureUrl(id, 1600)} 1600w`;
  const sides = { width: String(width), height: String(height) };
  return element("img", { class: "made__picture", src: pictureUrl(id, 800), srcset, sizes: SIZES, ...sides, alt: prompt, decoding: "async" });
}

/** @param {string} id @param {string} name */
function downloadLink(id, name) {
  const words = gettext("Download the picture");
  return element("a", { class: "small-button", href: contentUrl(id), download: name, "aria-label": words, title: words }, [icon("download")]);
}

/**
 * What stands where a picture would.
 * @param {string} words
 * @param {() => HTMLElement} [again] what comes back in its place
 */
function unshown(words, again) {
  const note = element("p", { class: "made__gone" }, [icon("image"), element("span", {}, [words])]);
  if (!again) return note;
  const button = element("button", { type: "button", class: "button" }, [icon("rotate-cw"), gettext("Try again")]);
  button.addEventListener("click", () => {
    const back = again();
    note.replaceWith(back);
    back.focus();
  });
  note.append(button);
  return note;
}

/** @param {string} content of the result */
function whyFailed(content) {
  if (content === REFUSED) return gettext("You have not allowed this picture.");
  return gettext("The picture could not be drawn: %(reason)s", { reason: content.replace(/^error: /, "") });
}

/** @param {string} words @param {string} prompt */
function undrawn(words, prompt) {
  const said = element("p", { class: "made__failed", dir: "auto" }, [icon("circle-alert"), element("span", {}, [words])]);
  const caption = element("figcaption", { class: "made__caption" }, [about(prompt, [])]);
  return element("figure", { class: "made" }, prompt ? [said, caption] : [said]);
}

/** @param {number} ratio @param {Node[]} children */
function shaped(ratio, children) {
  const shape = ratio > 1.1 ? "landscape" : ratio < 0.9 ? "portrait" : "square";
  return element("figure", { class: "made", "data-shape": shape }, children);
}

/** The prompt on a line, which unfolds. @param {string} prompt @param {string[]} words */
function about(prompt, words) {
  const line = element("span", { class: "made__prompt", dir: "auto" }, [prompt]);
  const more = words.filter(Boolean).join(" ");
  return element("details", {}, [element("summary", {}, [line, icon("chevron-down")]), ...(more ? [element("p", { class: "made__about" }, [more])] : [])]);
}

/** @param {string} prompt */
function copyButton(prompt) {
  const name = gettext("Copy the prompt");
  const button = element("button", { type: "button", class: "small-button", "aria-label": name, title: name }, [icon("copy")]);
  button.addEventListener("click", async () => {
    try {
      await copyText(prompt);
    } catch (error) {
      button.dispatchEvent(new CustomEvent("problem", { detail: /** @type {Error} */ (error).message, bubbles: true }));
      return;
    }
    button.replaceChildren(icon("check"));
    setTimeout(() => button.replaceChildren(icon("copy")), COPIED_MS);
    button.dispatchEvent(new CustomEvent("copied", { bubbles: true }));
  });
  return button;
}

/** @param {HTMLElement} figure @param {string} words */
function say(figure, words) {
  figure.dispatchEvent(new CustomEvent("said", { detail: words, bubbles: true }));
}
