import assert from "node:assert/strict";
import { test } from "node:test";

import { toCsv } from "../../static/js/csv.js";

test("fields are quoted where they have to be", () => {
  assert.equal(toCsv([["a", 'say "b"'], ["c,d", "e\nf"]]), 'a,"say ""b"""\r\n"c,d","e\nf"\r\n');
});

test("no cell is a formula", () => {
  for (const cell of ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", " =1", "＝1+1"]) {
    const [field] = toCsv([[cell]]).split("\r\n");
    assert.ok(field.replace(/^"/, "").startsWith("'"), field);
  }
});

test("numbers stay numbers", () => {
  assert.equal(toCsv([["-5", "+3.5 %", "-1 000", "1e3"]]), "-5,+3.5 %,-1 000,1e3\r\n");
});

test("what is read back is what was written, for any cells", () => {
  const parse = (csv) =>
    csv.slice(0, -2).split(/\r\n(?=(?:[^"]*"[^"]*")*[^"]*$)/).map((row) =>
      row.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/).map((field) =>
        (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field)));
  const signs = ["a", ",", '"', "\n", " ", "5", "\r\n"];
  for (let seed = 1, state = 7; seed <= 500; seed += 1) {
    const cells = Array.from({ length: 3 }, () => {
      let cell = "x";
      for (let count = 0; count < 5; count += 1) {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        cell += signs[state % signs.length];
      }
      return cell;
    });
    assert.deepEqual(parse(toCsv([cells, cells])), [cells, cells]);
  }
});
