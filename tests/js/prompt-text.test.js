import assert from "node:assert/strict";
import { test } from "node:test";

import { filled, promptsFor, slashAt, variablesOf } from "../../static/js/prompt-text.js";

const PROMPTS = [
  { id: "1", name: "translate", text: "Translate into {{language}}" },
  { id: "2", name: "shorten", text: "Make it short" },
  { id: "3", name: "letter", text: "Write a short letter" },
];
const names = (query) => promptsFor(PROMPTS, query).map(({ name }) => name);

test("a slash calls at the beginning and behind white space, and not inside of a word", () => {
  assert.deepEqual(slashAt("/tr", 3), { from: 0, query: "tr" });
  assert.deepEqual(slashAt("and then\n/Tr", 12), { from: 9, query: "tr" });
  for (const text of ["and/or", "https://x", "/two words", "1 / 2", ""]) {
    assert.equal(slashAt(text, text.length), null, text);
  }
  assert.deepEqual(slashAt("/translate", 3), { from: 0, query: "tr" }, "up to the caret");
});

test("names that begin alike come first", () => {
  assert.deepEqual(names(""), ["translate", "shorten", "letter"]);
  assert.deepEqual(names("s"), ["shorten", "translate", "letter"]);
  assert.deepEqual(names("short"), ["shorten", "letter"]);
  assert.deepEqual(names("zzz"), []);
});

test("variables are found once each, with their kind", () => {
  const text = "{{name}} {{ tone : formal | casual }} {{day:date}} {{name}} {{}} {x} {{a|b}}";
  assert.deepEqual(variablesOf(text), [
    { name: "name", kind: "text", choices: [] },
    { name: "tone", kind: "choice", choices: ["formal", "casual"] },
    { name: "day", kind: "date", choices: [] },
  ]);
});

test("values take the places of their variables, whatever they hold", () => {
  const text = "Dear {{name}}, {{tone:a|b}}, {{name}} {{other}}";
  const values = { name: "$& {{tone:a|b}}", tone: "b" };
  assert.equal(filled(text, values), "Dear $& {{tone:a|b}}, b, $& {{tone:a|b}} {{other}}");
});
