import assert from "node:assert/strict";
import { test } from "node:test";

import { folded, lineDiff } from "../../static/js/line-diff.js";

function of(diff, ...kinds) {
  return diff.filter(({ kind }) => kinds.includes(kind)).map(({ text }) => text);
}

/** The shortest way, by the plain recursion. */
function numSame(a, b) {
  const row = new Array(b.length + 1).fill(0);
  for (const one of a) {
    let before = 0;
    b.forEach((other, index) => {
      const above = row[index + 1];
      row[index + 1] = one === other ? before + 1 : Math.max(above, row[index]);
      before = above;
    });
  }
  return row[b.length];
}

test("for any texts both can be read out of what has changed, and no shorter change leads there", () => {
  let state = 11;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  for (let round = 0; round < 400; round += 1) {
    const text = () => Array.from({ length: random(9) }, () => ["a", "b", "", "c d"][random(4)]);
    const [old, wanted] = [text(), text()];
    const diff = lineDiff(old.map((line) => `${line}\n`).join(""), wanted.map((line) => `${line}\n`).join(""));
    assert.deepEqual(of(diff, "same", "removed"), old);
    assert.deepEqual(of(diff, "same", "added"), wanted);
    assert.equal(of(diff, "same").length, numSame(old, wanted));
  }
});

test("what is removed stands before what comes in its place", () => {
  const kinds = lineDiff("a\nb\nc\n", "a\nx\nc\n").map(({ kind }) => kind);
  assert.deepEqual(kinds, ["same", "removed", "added", "same"]);
});

test("texts of any size are compared in a moment", () => {
  const lines = (sign) => Array.from({ length: 30_000 }, (_, n) => `${sign}${n}`).join("\n");
  const diff = lineDiff(`first\n${lines("a")}\nlast`, `first\n${lines("b")}\nlast`);
  assert.deepEqual(of(diff, "same"), ["first", "last"]);
  assert.equal(diff.length, 60_002);
});

test("three lines around a change are shown, and how many are not", () => {
  const text = (middle) => [...Array.from({ length: 10 }, (_, n) => `b${n}`), middle, ...Array.from({ length: 10 }, (_, n) => `e${n}`)].join("\n");
  const shown = folded(lineDiff(text("old"), text("new")));
  assert.deepEqual(shown.map((line) => (line.kind === "left-out" ? line.count : line.text)), [7, "b7", "b8", "b9", "old", "new", "e0", "e1", "e2", 7]);
  assert.deepEqual(folded(lineDiff("a\nb", "a\nb")), [{ kind: "left-out", count: 2 }]);
  assert.deepEqual(folded([]), []);
});
