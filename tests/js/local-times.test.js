import assert from "node:assert/strict";
import { test } from "node:test";

process.env.TZ = "Asia/Tokyo";
const { showLocalTimes } = await import("../../static/js/local-times.js");

function shown(words, kind) {
  const time = { dateTime: "2026-03-05T20:30:00+00:00", dataset: { shown: kind }, textContent: words, title: "" };
  showLocalTimes({ querySelectorAll: () => [time] });
  return time;
}

test("a browser in Tokyo shows the time and the day of Tokyo", () => {
  assert.match(shown("March 5, 2026, 8:30 p.m. UTC", "time").textContent, /^March 6, 2026 at 5:30\sAM$/);
  assert.equal(shown("March 5, 2026", "day").textContent, "March 6, 2026");
});

test("a span of time stays as it is and tells when it began", () => {
  const time = shown("3 days", "span");
  assert.equal(time.textContent, "3 days");
  assert.match(time.title, /^Friday, March 6, 2026 at 5:30\sAM$/);
});
