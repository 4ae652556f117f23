import assert from "node:assert/strict";
import { test } from "node:test";

import { aboutShare, shareFacts, snippet } from "../../static/js/share-words.js";

const CHOICE = {
  kind: "snapshot", withSteps: false, withName: false, numMessages: 2, first: "Hello", last: "Hi",
  hasSteps: true, isPublic: false,
};

test("the dialog says exactly what a link shows", () => {
  assert.deepEqual(shareFacts(CHOICE), [
    "Shown: the title and 2 messages, from “Hello” to “Hi”.",
    "Not shown: anything that you write later.",
    "Not shown: other branches, the system prompt, thinking and tool results, and your name.",
    "Anyone with an account here who has the link can open it.",
  ]);
  const open = shareFacts({ ...CHOICE, kind: "live", withSteps: true, withName: true, isPublic: true });
  assert.match(open[1], /what tools were given/);
  assert.match(open[2], /every message that you add/);
  assert.equal(open[3], "Not shown: other branches and the system prompt.");
  assert.equal(open[4], "Anyone who has the link can open it.");
  const drawn = shareFacts({ ...CHOICE, hasPictures: true });
  assert.equal(drawn[1], "Shown: the pictures that answers have drawn, with their prompts.");
  assert.equal(drawn.length, 5);
});

test("a snippet is one line and never half a character", () => {
  assert.equal(snippet("a\n  b"), "a b");
  assert.equal(snippet("   "), "…");
  assert.equal(snippet("😀".repeat(60)), `${"😀".repeat(47)}…`);
});

test("a link's line names what is unusual", () => {
  const share = {
    kind: "live", with_steps: true, shown_name: "Ada", created_at: "2026-11-22T12:00:00Z",
    expires_at: "2026-11-29T12:00:00Z",
  };
  assert.equal(aboutShare(share),
    "Live of Nov 22, 2026 · with tool results · with your name · ends Nov 29, 2026");
});
