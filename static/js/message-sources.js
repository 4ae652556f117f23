// @ts-check
/**
 * Where a message has its knowledge from: under an answer what was found, above a question what was
 * picked for it.
 *
 * @typedef {import("./conversation-store.js").Message} Message
 * @typedef {import("./sources.js").Cited} Cited
 */

import { citedIn, linkTo } from "./citations.js";
import { collectionUrl, isPicture, pictureUrl, viewerUrl } from "./document-links.js";
import { element, icon } from "./dom.js";
import { gettext } from "./i18n.js";
import { textOf } from "./parts.js";
import { placeOf, rowOf, unreadWords } from "./sources.js";

/**
 * @param {HTMLElement} root of the answer
 * @param {Message} message
 * @param {import("./citations.js").Citing} citing
 */
export function showFound(root, message, { numbers }) {
  const { found, id, parts } = message;
  const cited = found ? citedIn(textOf(parts)).filter((number) => numbers.has(number)) : [];
  const key = found ? `${id} ${found.is_whole} ${found.excerpts.length} ${found.num_waiting} ${found.num_failed} ${cited}` : "";
  put(root, key, ".message__end", () => foundRow(/** @type {NonNullable<typeof found>} */ (found), id, cited, numbers));
}

/**
 * @param {HTMLElement} root of the question
 * @param {Message} message
 */
export function showPicked(root, { sources }) {
  put(root, sources ? JSON.stringify(sources) : "", ".message__parts", () => pickedRow(/** @type {NonNullable<typeof sources>} */ (sources)));
}

/**
 * Put a row in front of a part of the message, where it is not there yet.
 * @param {HTMLElement} root
 * @param {string} key what it shows, "" for none
 * @param {string} before
 * @param {() => HTMLElement} make
 */
function put(root, key, before, make) {
  const old = /** @type {HTMLElement | null} */ (root.querySelector(":scope > .sources"));
  if ((old?.dataset.key ?? "") === key) return;
  old?.remove();
  if (!key) return;
  const row = make();
  row.dataset.key = key;
  root.querySelector(before)?.before(row);
}

/**
 * @param {import("./sources.js").Found} found
 * @param {string} answer
 * @param {number[]} cited
 * @param {Map<number, Cited>} numbers
 */
function foundRow(found, answer, cited, numbers) {
  if (!found.excerpts.length && !cited.length) {
    const words = unreadWords(found).join(" ") || gettext("Nothing in the documents fits this question.");
    return element("p", { class: "sources sources--none" }, [icon("search"), words]);
  }
  const { excerpts, whole } = rowOf(found, answer, cited, numbers);
  const list = element("ul", { class: "sources", "aria-label": gettext("Sources") });
  for (const one of excerpts) list.append(element("li", {}, [excerptChip(one, cited.includes(one.excerpt.number))]));
  for (const one of whole) list.append(element("li", {}, [wholeChip(one)]));
  for (const words of unreadWords(found)) list.append(element("li", { class: "sources--none" }, [words]));
  return list;
}

/**
 * @param {Cited} cited
 * @param {boolean} isCited
 */
function excerptChip({ excerpt, answer }, isCited) {
  const { page } = placeOf(excerpt);
  const parts = [
    element("span", { class: "source__number" }, [String(excerpt.number)]),
    element("span", { class: "source__name", dir: "auto" }, [excerpt.name]),
    ...(page ? [element("span", { class: "source__place" }, [page])] : []),
  ];
  const about = isCited ? {} : { "data-uncited": "" };
  return element("a", { class: "source source--link", ...linkTo(excerpt, answer), ...about }, parts);
}

/** @param {import("./sources.js").Excerpt} excerpt any of a document that was read whole */
function wholeChip({ document, version, name }) {
  const link = { class: "source source--link", href: viewerUrl({ document, version }), target: "_blank", rel: "noopener", "data-uncited": "" };
  return element("a", link, [
    icon("file-text"), element("span", { class: "source__name", dir: "auto" }, [name]),
    element("span", { class: "source__place" }, [gettext("Read whole")]),
  ]);
}

/** @param {import("./sources.js").Sources} sources */
function pickedRow({ collections, documents }) {
  const chips = [
    ...collections.map((one) => pickedChip("library", collectionUrl(one.id), one)),
    ...documents.map((one) => (isPicture(one.name) ? picture(one) : fileChip(one))),
  ];
  const items = chips.map((chip) => element("li", {}, [chip]));
  return element("ul", { class: "sources sources--picked", "aria-label": gettext("Answered from") }, items);
}

/** @param {import("./sources.js").Named} named */
function fileChip(named) {
  return pickedChip("file-text", viewerUrl({ document: named.id }), named);
}

/**
 * A picture that was attached; where it is gone its name stays.
 * @param {import("./sources.js").Named} named
 */
function picture(named) {
  const { id, name } = named;
  const drawn = element("img", { src: pictureUrl(id, 800), alt: name, loading: "lazy" });
  const link = element("a", { class: "picture", href: viewerUrl({ document: id }), target: "_blank", rel: "noopener", title: name, "data-name": name }, [drawn]);
  drawn.addEventListener("error", () => link.replaceWith(fileChip(named)));
  return link;
}

/**
 * @param {string} iconName
 * @param {string} href
 * @param {import("./sources.js").Named} named
 */
function pickedChip(iconName, href, { name }) {
  const link = { class: "source source--link", href, target: "_blank", rel: "noopener" };
  return element("a", link, [icon(iconName), element("span", { class: "source__name", dir: "auto" }, [name])]);
}
