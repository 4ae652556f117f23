import assert from "node:assert/strict";
import { test } from "node:test";

const AR = {
  Yesterday: "أمس",
  "about %(time)s": "نحو %(time)s",
  "%(n)s token": ["لا", "واحد", "اثنان", "%(n)s قليل", "%(n)s كثير", "%(n)s غيره"],
};

/** The module as a page in a language has it. */
async function inLanguage(lang, words) {
  globalThis.document = {
    documentElement: { lang },
    getElementById: (id) => (id === "words" && words ? { textContent: JSON.stringify(words) } : null),
  };
  try {
    return await import(`../../static/js/i18n.js?${lang}`);
  } finally {
    delete globalThis.document;
  }
}

test("English needs no catalog", async () => {
  const { gettext, listed, ngettext } = await inLanguage("en");
  assert.equal(gettext("Yesterday"), "Yesterday");
  assert.equal(gettext("about %(time)s", { time: "%(x)s $& 4 s" }), "about %(x)s $& 4 s");
  assert.equal(gettext("100 % of %(unknown)s", { time: 1 }), "100 % of %(unknown)s");
  const tokens = (n) => ngettext("%(n)s token", "%(n)s tokens", n);
  assert.deepEqual([0, 1, 2, 1234].map(tokens), ["0 tokens", "1 token", "2 tokens", "1,234 tokens"]);
  assert.equal(listed(["a", "b", "c"]), "a, b, and c");
});

test("a plural takes the form that gettext's rule for Arabic takes", async () => {
  const { gettext, ngettext, LOCALE } = await inLanguage("ar", AR);
  assert.equal(gettext("Yesterday"), "أمس");
  assert.equal(gettext("Today"), "Today", "what is not translated is English");
  const form = (n) => AR["%(n)s token"].indexOf(ngettext("%(n)s token", "%(n)s tokens", n).replace(/^\S*\d\S*/, "%(n)s"));
  const rule = (n) => {
    if (n < 3) return n;
    const rest = n % 100;
    return rest >= 3 && rest <= 10 ? 3 : rest >= 11 ? 4 : 5;
  };
  for (let n = 0; n < 1300; n++) assert.equal(form(n), rule(n), String(n));
  assert.equal(new Intl.NumberFormat(LOCALE).format(12), "12", "with the page's digits");
});
