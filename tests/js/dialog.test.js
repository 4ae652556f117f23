import assert from "node:assert/strict";
import { test } from "node:test";

import { choiceOf } from "../../static/js/dialog.js";

/** As browsers have it: "close" comes as a task of its own. */
class Dialog extends EventTarget {
  open = false;
  returnValue = "";

  showModal() {
    this.open = true;
  }

  close(value = this.returnValue) {
    this.open = false;
    this.returnValue = value;
    setTimeout(() => this.dispatchEvent(new Event("close")), 5);
  }
}

const later = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

test("an answer is what its button says", async () => {
  const dialog = new Dialog();
  const choice = choiceOf(dialog);
  assert.ok(dialog.open, "shown at once");
  dialog.close("yes");
  assert.equal(await choice, "yes");
});

test("a question that comes before the one before has ended hears its own answer", async () => {
  const dialog = new Dialog();
  const first = choiceOf(dialog);
  dialog.close("");
  const second = choiceOf(dialog);
  await later(20);
  assert.ok(dialog.open);
  dialog.close("yes");
  assert.deepEqual(await Promise.all([first, second]), ["", "yes"]);
  const third = choiceOf(dialog);
  assert.ok(dialog.open);
  dialog.close("");
  assert.equal(await third, "");
});

test("who asks what is being asked hears the same", async () => {
  const dialog = new Dialog();
  const both = Promise.all([choiceOf(dialog), choiceOf(dialog)]);
  dialog.close("yes");
  assert.deepEqual(await both, ["yes", "yes"]);
});
