// @ts-check
/** Tables as CSV (RFC 4180). Pure. */

/** What spreadsheets take for a formula, also in full width; plain numbers begin alike and are none. */
const FORMULA = /^\s*[=+\-@\t\r＝＋－＠]/;
const NUMBER = /^\s*[+-]?[\d.,\s]*\d\s*%?\s*$/;

/** @param {string[][]} rows */
export function toCsv(rows) {
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** @param {string} cell */
function field(cell) {
  const harmless = FORMULA.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
