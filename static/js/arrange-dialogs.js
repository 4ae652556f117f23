// @ts-check
/** Where to move chats, and how to tag them. Native <dialog>: it traps the focus and gives it back. */

import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { count } from "./words.js";

/** @typedef {import("./library.js").Conversation} Conversation */
/** @typedef {import("./library.js").Folder} Folder */

/**
 * Ask for a folder. `name` is that of a new one.
 * @param {Folder[]} folders
 * @param {Conversation[]} chats
 * @returns {Promise<{folder: Folder | null} | {name: string} | null>} null: it was cancelled
 */
export function askForFolder(folders, chats) {
  const dialog = find(document, "#move-dialog");
  const current = new Set(chats.map(({ folder }) => folder));
  const only = current.size === 1 ? [...current][0] : undefined;
  const choices = [...folders.map((folder) => folderChoice(folder, folder.id === only))];
  if (only !== null) choices.push(folderChoice(null, false));
  find(dialog, "ul").replaceChildren(...choices);
  const field = find(dialog, "input");
  field.value = "";
  return new Promise((resolve) => {
    const answer = closing(dialog, () => {
      const [kind, value] = [dialog.returnValue.slice(0, 4), dialog.returnValue.slice(4)];
      const name = field.value.trim();
      if (kind === "into") resolve({ folder: folders.find(({ id }) => id === value) ?? null });
      else resolve(kind === "make" && name ? { name } : null);
    });
    answer.showModal();
    (find(dialog, "ul").querySelector("button") ?? field).focus();
  });
}

/**
 * @param {Folder | null} folder
 * @param {boolean} isCurrent
 */
function folderChoice(folder, isCurrent) {
  const attributes = { class: "popover__row", value: `into${folder?.id ?? ""}`, dir: "auto" };
  const button = element("button", attributes, [
    icon(folder ? "folder" : "x"), folder?.name ?? gettext("Out of its folder"),
  ]);
  if (isCurrent) button.setAttribute("aria-current", "true");
  return element("li", {}, [button]);
}

/**
 * Ask for another name.
 * @param {string} name
 * @param {string} heading
 * @param {number} maxChars
 * @returns {Promise<string | null>} null: it stays
 */
export function askForName(name, heading, maxChars) {
  const dialog = find(document, "#name-dialog");
  const field = find(dialog, "input");
  setText(find(dialog, "h2"), heading);
  field.maxLength = maxChars;
  field.value = name;
  return new Promise((resolve) => {
    closing(dialog, () => {
      const typed = field.value.trim();
      resolve(dialog.returnValue === "save" && typed && typed !== name ? typed : null);
    }).showModal();
    field.select();
  });
}

/**
 * Ask for tags. A tag that only some of the chats have stays as it is unless it is touched.
 * @param {string[]} known
 * @param {Conversation[]} chats
 * @returns {Promise<{added: string[], removed: string[]} | null>}
 */
export function askForTags(known, chats) {
  const dialog = find(document, "#tags-dialog");
  const list = find(dialog, "ul");
  const field = find(dialog, "input[name=tag]");
  const form = find(dialog, "[data-new-tag]");
  list.replaceChildren(...known.map((tag) => tagChoice(tag, chats)));
  field.value = "";
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    const tag = cleanTag(field.value);
    field.value = "";
    if (!tag) return;
    const box = [...list.querySelectorAll("input")].find(({ value }) => value === tag);
    if (box) Object.assign(box, { checked: true, indeterminate: false });
    else list.prepend(tagChoice(tag, [], true));
  };
  form.addEventListener("submit", add);
  setText(find(dialog, "p"), chats.length === 1 ? chats[0].title || gettext("New chat") : count(chats.length, "chat"));
  return new Promise((resolve) => {
    closing(dialog, () => {
      form.removeEventListener("submit", add);
      if (dialog.returnValue !== "save") return resolve(null);
      const left = cleanTag(field.value); // typed, and not yet added
      const boxes = [...list.querySelectorAll("input")].filter(({ indeterminate }) => !indeterminate);
      const added = boxes.filter(({ checked }) => checked).map(({ value }) => value);
      const removed = boxes.filter(({ checked }) => !checked).map(({ value }) => value);
      resolve({ added: left ? [...added, left] : added, removed });
    }).showModal();
    field.focus();
  });
}

/**
 * @param {string} tag
 * @param {Conversation[]} chats
 * @param {boolean} [isNew]
 */
function tagChoice(tag, chats, isNew = false) {
  const num = chats.filter(({ tags }) => tags?.includes(tag)).length;
  const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", value: tag }));
  box.checked = isNew || (num > 0 && num === chats.length);
  box.indeterminate = !isNew && num > 0 && num < chats.length;
  return element("li", {}, [element("label", { class: "tag-choice", dir: "auto" }, [box, tag])]);
}

/** @param {string} typed */
function cleanTag(typed) {
  return typed.replaceAll('"', "").replace(/\s+/g, " ").trim().toLowerCase();
}

/**
 * @param {any} dialog
 * @param {() => void} done
 */
function closing(dialog, done) {
  dialog.returnValue = "";
  dialog.addEventListener("close", done, { once: true });
  return dialog;
}
