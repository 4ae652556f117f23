// @ts-check
/** Saved prompts in the composer: a slash calls them. What a prompt asks for is asked in a dialog. */

import { CaretMenu, replaceCall } from "./caret-menu.js";
import { element, find, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { filled, promptsFor, slashAt, variablesOf } from "./prompt-text.js";

/** @typedef {import("./prompt-text.js").SavedPrompt} SavedPrompt */

/**
 * @param {HTMLTextAreaElement} input
 * @param {() => Promise<SavedPrompt[]>} load
 */
export function promptMenu(input, load) {
  /** @type {SavedPrompt[] | null} null: to be read, for another tab may have changed them */
  let prompts = null;
  document.addEventListener("visibilitychange", () => document.hidden || (prompts = null));
  return new CaretMenu(input, {
    id: "prompt-menu",
    label: gettext("Prompts"),
    callAt: slashAt,
    find: async (query) => {
      prompts ??= await load().catch(() => null); // asked again at the next key
      return promptsFor(prompts ?? [], query);
    },
    row,
    nothing: () => (prompts?.length === 0 ? emptyRow() : null),
    take: async (prompt, call) => {
      const values = await askFor(prompt);
      if (values) replaceCall(input, call, filled(prompt.text, values));
      else input.focus();
    },
  });
}

/** @param {SavedPrompt} prompt */
function row({ id, name, text }) {
  return element("li", { id: `prompt-${id}`, class: "caret-menu__row", role: "option", "data-prompt": id }, [
    element("span", { class: "caret-menu__name" }, [`/${name}`]),
    element("span", { class: "caret-menu__text", dir: "auto" }, [text.slice(0, 160)]),
  ]);
}

function emptyRow() {
  const link = element("a", { href: "/settings/prompts/new" }, [gettext("Save the first one")]);
  return element("li", { class: "caret-menu__empty" }, [`${gettext("You have no prompts yet.")} `, link]);
}

/**
 * Ask for the variables of a prompt.
 * @param {SavedPrompt} prompt
 * @returns {Promise<Record<string, string> | null>} null: the reader has changed their mind
 */
function askFor({ name, text }) {
  const variables = variablesOf(text);
  if (!variables.length) return Promise.resolve({});
  const dialog = find(document, "#prompt-variables");
  setText(find(dialog, "h2"), `/${name}`);
  find(dialog, ".form").replaceChildren(...variables.map(field));
  dialog.returnValue = "";
  dialog.showModal();
  find(dialog, ".form").querySelector("input, select")?.focus();
  return new Promise((resolve) => {
    const close = () => {
      const fields = /** @type {HTMLInputElement[]} */ ([...dialog.querySelectorAll("[name]")]);
      const values = Object.fromEntries(fields.map((one) => [one.name, one.value]));
      resolve(dialog.returnValue === "yes" ? values : null);
    };
    dialog.addEventListener("close", close, { once: true });
  });
}

/** @param {import("./prompt-text.js").Variable} variable */
function field({ name, kind, choices }, index) {
  const id = `prompt-variable-${index}`;
  const label = element("label", { for: id }, [name]);
  if (kind === "choice") {
    const options = choices.map((choice) => element("option", { value: choice }, [choice]));
    return element("div", { class: "field" }, [label, element("select", { id, name }, options)]);
  }
  const attributes = { id, name, type: kind === "date" ? "date" : "text", autocomplete: "off", dir: "auto" };
  const input = /** @type {HTMLInputElement} */ (element("input", attributes));
  if (kind === "date") input.value = new Date().toLocaleDateString("sv");
  return element("div", { class: "field" }, [label, input]);
}
