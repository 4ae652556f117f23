// @ts-check
/**
 * In which language a text is, as far as a voice has to know: by its letters and, where many languages
 * have the same, by the small words that each has most of.
 */

const SAMPLE_CHARS = 2_000;
/** @type {[RegExp, string][]} in this order: Japanese has Han characters too */
const LETTERS = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/gu, "ja"],
  [/\p{Script=Hangul}/gu, "ko"],
  [/\p{Script=Han}/gu, "zh"],
  [/\p{Script=Arabic}/gu, "ar"],
  [/\p{Script=Hebrew}/gu, "he"],
  [/\p{Script=Greek}/gu, "el"],
  [/\p{Script=Cyrillic}/gu, "ru"],
  [/\p{Script=Devanagari}/gu, "hi"],
  [/\p{Script=Thai}/gu, "th"],
];
const LEAST_SHARE = 0.2; // of a text's letters: names and quotes are of others
const LEAST_WORDS = 2;
/** @type {Record<string, string>} */
const SMALL_WORDS = {
  en: "the of and to in is that it was for with on are this be as have not you which",
  de: "der die das und ist nicht ein eine den von mit sich auf für dem im zu auch wird sind",
  fr: "le la les des et est une un dans que qui pour pas sur du au avec sont ce cette",
  es: "el la los las y es una un en que para por con del al no se como más lo",
  it: "il la di che è un una per con non del della sono gli nel anche le si come più",
  pt: "o a os as e é um uma em que para com não do da dos das por como mais",
  nl: "de het een en van is dat niet te met voor zijn op aan er ook worden bij naar wordt",
};

/**
 * @param {string} text
 * @param {string} otherwise the language where nothing tells
 * @returns {string} as "de"
 */
export function languageOf(text, otherwise) {
  const sample = text.slice(0, SAMPLE_CHARS);
  const numLetters = sample.match(/\p{L}/gu)?.length ?? 0;
  for (const [letters, language] of LETTERS) {
    if ((sample.match(letters)?.length ?? 0) > LEAST_SHARE * numLetters) return language;
  }
  const words = sample.toLowerCase().match(/\p{L}+/gu) ?? [];
  let best = otherwise;
  let most = LEAST_WORDS - 1;
  for (const [language, list] of Object.entries(SMALL_WORDS)) {
    const small = new Set(list.split(" "));
    const found = words.filter((word) => small.has(word)).length;
    // Of equals the page's own language.
    if (found > most || (found === most && language === otherwise)) [best, most] = [language, found];
  }
  return best;
}
