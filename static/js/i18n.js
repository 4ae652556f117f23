// @ts-check
/**
 * The page's language: its texts, plurals, numbers and dates. The English text is the key of its
 * translation, and what is shown where there is none; `%(name)s` in it are filled with values.
 */

const page = globalThis.document?.documentElement;
const language = page?.lang || "en";

/** For Intl: Arabic with the digits that the rest of the page has. */
export const LOCALE = language.startsWith("ar") ? `${language}-u-nu-latn` : language;

/** @type {Record<string, string | string[]>} */
const words = JSON.parse(globalThis.document?.getElementById?.("words")?.textContent || "{}");
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const rules = new Intl.PluralRules(LOCALE);
/** Forms stand in a catalog in the order of CLDR's categories. */
const FORMS = ["zero", "one", "two", "few", "many", "other"].filter((category) =>
  rules.resolvedOptions().pluralCategories.includes(/** @type {Intl.LDMLPluralRule} */ (category)),
);

/** @typedef {Record<string, string | number>} Values */

/**
 * @param {string} text in English
 * @param {Values} [values]
 */
export function gettext(text, values) {
  return filled(String(words[text] ?? text), values);
}

/**
 * The form for a number, which is `%(n)s`.
 * @param {string} one in English
 * @param {string} many
 * @param {number} number
 * @param {Values} [values]
 */
export function ngettext(one, many, number, values) {
  const forms = words[one];
  const english = number === 1 ? one : many;
  const text = Array.isArray(forms) ? forms[FORMS.indexOf(rules.select(number))] ?? english : english;
  return filled(text, { n: whole.format(number), ...values });
}

/**
 * @param {string} text
 * @param {Values} [values]
 */
export function filled(text, values) {
  if (!values) return text;
  return text.replace(/%\((\w+)\)s/g, (all, name) => (Object.hasOwn(values, name) ? String(values[name]) : all));
}

/**
 * A part that stands beside others in a line and has a direction of its own.
 * @param {string} text
 */
export function isolated(text) {
  return page?.dir === "rtl" ? `\u2068${text}\u2069` : text;
}

/**
 * Several things in one sentence: a, b and c.
 * @param {string[]} things
 */
export function listed(things) {
  return new Intl.ListFormat(LOCALE, { type: "conjunction" }).format(things);
}
