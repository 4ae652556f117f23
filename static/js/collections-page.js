// @ts-check
/** The page of all collections: made here, opened from here. */

import "./back-to-chat.js";
import { DocumentApi } from "./document-api.js";
import { collectionUrl } from "./document-links.js";
import { aboutCollection } from "./document-words.js";
import { element, find, icon } from "./dom.js";
import { FormDialog } from "./form-dialog.js";
import { gettext } from "./i18n.js";
import { stateBox } from "./state-box.js";
import { followTheme } from "./theme.js";

const { csrf, may_create } = JSON.parse(find(document, "#bootstrap").textContent);
const api = new DocumentApi(csrf);
const list = find(document, "[data-collections]");
const box = find(document, "[data-state-box]");
const dialog = new FormDialog(find(document, "#collection-dialog"));

async function load() {
  try {
    const collections = await api.collections();
    list.replaceChildren(...collections.map(row));
    stateBox(box, collections.length ? null : {
      icon: "library",
      title: gettext("No documents yet"),
      text: may_create ? gettext("Make a collection, bring your files into it, and search them by what they say.") : gettext("Nobody has shared any with you yet."),
      action: may_create ? { words: gettext("New collection"), run: create } : undefined,
    });
  } catch (error) {
    stateBox(box, {
      icon: "circle-alert",
      title: gettext("The collections could not be loaded"),
      text: /** @type {Error} */ (error).message,
      action: { words: gettext("Try again"), run: load },
    });
  }
  list.removeAttribute("aria-busy");
}

/** @param {import("./document-api.js").Collection} collection */
function row(collection) {
  return element("li", { class: "collection", "data-collection": collection.id }, [
    icon(collection.is_mine ? "library" : "users"),
    element("span", { class: "collection__main" }, [
      element("a", { class: "collection__name", href: collectionUrl(collection.id) }, [element("bdi", {}, [collection.name])]),
      ...(collection.description ? [element("span", { class: "collection__description", dir: "auto" }, [collection.description])] : []),
      element("span", { class: "collection__about numbers" }, [aboutCollection(collection)]),
    ]),
  ]);
}

function create() {
  dialog.open({ name: "", description: "", caches_answers: "" }, async ({ name, description, caches_answers: caches }) => {
    const made = await api.createCollection({
      name: name.value.trim(), description: description.value.trim(), caches_answers: Boolean(caches.value),
    });
    location.assign(collectionUrl(made.id));
  });
}

document.querySelector("[data-new-collection]")?.addEventListener("click", create);
followTheme();
load();
