// @ts-check
/**
 * Characters that show something else than they are. Tag characters carry invisible text to a model
 * and are cut out; bidirectional overrides reorder what is read and are made visible by markdown.js.
 */

const FLAG = "\u{1F3F4}[\u{E0061}-\u{E007A}\u{E0030}-\u{E0039}]{3,6}\u{E007F}"; // Scotland, Wales …
const FLAG_OR_TAG = new RegExp(`(${FLAG})|[\u{E0000}-\u{E007F}]`, "gu");

/** Every bidirectional control; in code none of them has a good reason. */
export const BIDI_IN_CODE = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g;
/** The two that turn letters around; prose in right-to-left scripts needs the others. */
export const BIDI_IN_PROSE = /[\u202d\u202e]/g;

/**
 * The text without tag characters; flags that are made of them stay.
 * @param {string} text
 */
export function withoutTags(text) {
  return text.replace(FLAG_OR_TAG, (_, flag) => flag ?? "");
}

/**
 * A control character by its name, for example U+202E.
 * @param {string} character
 */
export function codePointName(character) {
  const number = /** @type {number} */ (character.codePointAt(0));
  return `U+${number.toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * JSON with what nobody sees, or what turns letters around, as its escapes: what a reader is to allow is
 * what they see. Joiners stay, of which words and emoji are made.
 * @param {string} json
 */
export function withUnseenEscaped(json) {
  const escaped = (/** @type {string} */ unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(/(?![\u200c\u200d])\p{Cf}/gu, (character) => character.split("").map(escaped).join(""));
}

/**
 * The host of a web address as it is registered: look-alike letters show as punycode. Null for an
 * address that is no web address.
 * @param {string} href
 */
export function hostOf(href) {
  try {
    const { protocol, host } = new URL(href);
    return protocol === "http:" || protocol === "https:" ? host : null;
  } catch {
    return null; // a relative or broken address: it leads nowhere outside
  }
}

/**
 * Whether words look like the address of another host than the one that they lead to.
 * @param {string} words
 * @param {string} host where the link leads
 */
export function namesAnotherHost(words, host) {
  const bare = (/** @type {string} */ name) => name.toLowerCase().replace(/^www\./, "").replace(/:\d+$/, "");
  const named = words.match(/(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}/gu) ?? [];
  return named.some((name) => bare(hostOf(`https://${name}`) ?? name) !== bare(host));
}
