// @ts-check
/** The share dialog: says exactly what a link will show, makes it, and lists the chat's links. */

import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { textOf } from "./parts.js";
import { ShareList } from "./share-list.js";
import { shareFacts, snippet } from "./share-words.js";

/** @typedef {import("./conversation-store.js").Message} Message */

const dialog = find(document, "#share-dialog");
const form = find(dialog, "[data-new-share]");
const facts = find(dialog, "[data-facts]");
const problem = find(dialog, ".sharing__problem");
const news = find(dialog, "[data-news]");
const links = find(dialog, "[data-links]");

/** @type {Message[]} */
let path = [];
let conversation = "";
/** @type {ShareList | null} */
let list = null;

/**
 * @param {import("./api.js").Api} api
 * @param {string} id of the conversation
 * @param {Message[]} shown the branch that the reader sees
 * @param {string} [upTo] the answer that the link ends with at first; without it the last one
 */
export async function openShareDialog(api, id, shown, upTo) {
  conversation = id;
  path = shown;
  list ??= madeList(api);
  fillAnswers();
  if (path.some(({ id: shownId }) => shownId === upTo)) form.elements.message.value = upTo;
  showFacts();
  showProblem("");
  setText(news, "");
  list.clear();
  dialog.showModal();
  await attempt(() => list?.load(id));
}

/** @param {import("./api.js").Api} api */
function madeList(api) {
  const made = new ShareList(find(links, "ul"), api);
  made.addEventListener("changed", () => (links.hidden = made.isEmpty));
  made.addEventListener("say", (event) => setText(news, /** @type {CustomEvent} */ (event).detail));
  form.addEventListener("change", showFacts);
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    if (form.ariaBusy === "true") return; // a second press would make a second link
    form.ariaBusy = "true";
    attempt(async () => {
      const { share } = await api.createShare(wish());
      made.add(share);
      await made.copy(share);
    }).finally(() => (form.ariaBusy = null));
  });
  find(form, "[data-close]").addEventListener("click", () => dialog.close());
  return made;
}

/** Finished answers of the branch, the last one first: most people share all of it. */
function fillAnswers() {
  const answers = path.filter(({ role, status }) => role === "assistant" && isFinished(status));
  const options = answers.reverse().map((answer, index) => {
    const words = snippet(textOf(answer.parts));
    return element("option", { value: answer.id }, [index ? words : gettext("the last answer: %(text)s", { text: words })]);
  });
  form.elements.message.replaceChildren(...options);
  find(form, "button.button--primary").disabled = options.length === 0;
}

/** @param {string} status */
function isFinished(status) {
  return status !== "running" && status !== "sending";
}

function showFacts() {
  const end = path.findIndex(({ id }) => id === form.elements.message.value);
  const shown = path.slice(0, end + 1);
  const sentences = shown.length
    ? shareFacts({
        kind: form.elements.kind.value,
        withSteps: form.elements.with_steps.checked,
        withName: form.elements.with_name.checked,
        numMessages: shown.length,
        first: textOf(shown[0].parts),
        last: textOf(shown[end].parts),
        hasSteps: shown.some(({ parts }) => parts.some(({ type }) => type !== "text")),
        hasPictures: shown.some(({ parts }) => parts.some((part) => part.type === "tool_call" && part.name === "create_image")),
        isPublic: facts.dataset.readers === "anyone",
      })
    : [gettext("There is no finished answer to share yet.")];
  facts.replaceChildren(...sentences.map((sentence) => element("li", {}, [sentence])));
}

function wish() {
  const { message, kind, with_steps, with_name, expires_in_days } = form.elements;
  return {
    conversation,
    message: message.value,
    kind: kind.value,
    with_steps: with_steps.checked,
    with_name: with_name.checked,
    expires_in_days: expires_in_days.value ? Number(expires_in_days.value) : null,
  };
}

/** @param {() => unknown} work */
async function attempt(work) {
  showProblem("");
  try {
    await work();
  } catch (error) {
    showProblem(/** @type {Error} */ (error).message);
  }
}

/** @param {string} words */
function showProblem(words) {
  problem.hidden = !words;
  setText(problem, words);
}
