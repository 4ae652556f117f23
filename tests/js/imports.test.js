// Modules import one way only: none reaches itself. What is imported when it is first wanted does not count.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const FOLDER = new URL("../../static/js/", import.meta.url);
const STATIC = /^(?:import|export)\b[^;"']*["']\.\/([\w-]+\.js)["'];/gm;
const DYNAMIC = /^(?!\s*(?:\*|\/\/)).*?\bimport\("\.\/([\w-]+\.js)"\)/gm;

const names = readdirSync(FOLDER).filter((name) => name.endsWith(".js"));
const sourceOf = (name) => readFileSync(new URL(name, FOLDER), "utf8");
const importsOf = new Map(names.map((name) => [name, [...sourceOf(name).matchAll(STATIC)].map(([, other]) => other)]));

test("no module imports itself by way of others", () => {
  const done = new Set();
  const visit = (name, path) => {
    assert.ok(!path.includes(name), [...path, name].join(" → "));
    if (done.has(name)) return;
    for (const other of importsOf.get(name) ?? []) visit(other, [...path, name]);
    done.add(name);
  };
  for (const name of names) visit(name, []);
  assert.ok(importsOf.get("chat.js").length > 10);
});

test("what is loaded when it is first wanted is there", () => {
  for (const name of names) {
    for (const [, other] of sourceOf(name).matchAll(DYNAMIC)) assert.ok(existsSync(new URL(other, FOLDER)), `${name}: ${other}`);
  }
});

test("what draws answers, and the glass, are no part of a new chat", () => {
  const reached = new Set();
  const reach = (name) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const other of importsOf.get(name) ?? []) reach(other);
  };
  reach("chat.js");
  for (const name of ["prose.js", "markdown.js", "sanitise.js", "code-view.js", "glass.js"]) assert.ok(!reached.has(name), name);
});
