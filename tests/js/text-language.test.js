import assert from "node:assert/strict";
import { test } from "node:test";

import { languageOf } from "../../static/js/text-language.js";

const TEXTS = {
  en: "The cat sits on the mat, and it is not to be moved.",
  de: "Die Katze sitzt auf der Matte und ist nicht zu bewegen.",
  fr: "Le chat est sur le tapis et il ne veut pas bouger dans la maison.",
  es: "El gato está en la alfombra y no se mueve para nada.",
  it: "Il gatto è sul tappeto e non si muove per la gioia di tutti.",
  pt: "O gato está em cima do tapete e não se move para a cozinha.",
  nl: "De kat zit op het kleed en is niet van plan om te bewegen.",
  ar: "القطة على السجادة ولا تتحرك. API",
  ru: "Кошка сидит на ковре и не двигается.",
  ja: "猫はマットの上に座っています。",
  zh: "猫坐在垫子上，不肯动。",
  ko: "고양이가 매트 위에 앉아 있다.",
  el: "Η γάτα κάθεται στο χαλί.",
};

test("a text's language is told", () => {
  for (const [language, text] of Object.entries(TEXTS)) {
    assert.equal(languageOf(text, "en"), language, text);
    assert.equal(languageOf(text, "de"), language, text);
  }
});

test("where nothing tells it is the page's", () => {
  for (const text of ["", "42", "Python 3.11", "Fragment", "OK."]) assert.equal(languageOf(text, "ar"), "ar");
});

test("a quote in other letters does not decide", () => {
  assert.equal(languageOf("The word for a cat is 猫, and that is the end of it.", "de"), "en");
});
