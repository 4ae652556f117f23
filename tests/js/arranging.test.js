import assert from "node:assert/strict";
import { test } from "node:test";

import { Arranging } from "../../static/js/arranging.js";
import { conversation } from "./fakes.js";

/** A server that keeps what it is told; those in `refuses` stay as they are. */
function start({ refuses = [], fails = false } = {}) {
  const asked = [];
  const api = {
    async arrange(changes) {
      asked.push(changes);
      if (fails) throw new Error("The server cannot be reached.");
      const refused = changes.filter(({ id }) => refuses.includes(id));
      const done = changes.filter((change) => !refused.includes(change));
      return {
        conversations: done.filter(({ deleted }) => !deleted).map(({ id, ...more }) => conversation(id, more)),
        deleted: done.filter(({ deleted }) => deleted).map(({ id }) => id),
        refused: refused.map(({ id }) => ({ id, code: "conflict", message: "It was changed." })),
      };
    },
  };
  const arranging = new Arranging(api);
  const heard = [];
  for (const name of ["changed", "deleted", "done", "problem"]) {
    arranging.on(name, (value) => heard.push([name, value]));
  }
  const of = (name) => heard.filter(([kind]) => kind === name).map(([, value]) => value);
  return { arranging, api, asked, of };
}

test("undo puts each chat back where it was", async () => {
  const { arranging, asked, of } = start();
  const chats = [conversation("a", { folder: "f1" }), conversation("b", { folder: null })];
  await arranging.move(chats, { id: "f2", name: "Two" });
  assert.deepEqual(asked[0], [{ id: "a", folder: "f2" }, { id: "b", folder: "f2" }]);
  const [{ text, undo }] = of("done");
  assert.equal(text, "2 chats are moved to Two.");
  await undo();
  assert.deepEqual(asked[1], [{ id: "a", folder: "f1" }, { id: "b", folder: null }]);
});

test("what is deleted comes back", async () => {
  const { arranging, asked, of } = start();
  await arranging.remove([conversation("a")]);
  assert.deepEqual(of("deleted"), [["a"]]);
  await of("done")[0].undo();
  assert.deepEqual(asked[1], [{ id: "a", deleted: false }]);
  assert.equal(of("changed").length, 1);
});

test("tags overwrite each other, so the version that was seen goes along", async () => {
  const { arranging, asked } = start();
  const chats = [conversation("a", { tags: ["old", "kept"], version: 7 })];
  await arranging.tag(chats, ["new", "kept"], ["old"]);
  assert.deepEqual(asked[0], [{ id: "a", tags: ["kept", "new"], version: 7 }]);
});

test("what is refused is told and not undone", async () => {
  const { arranging, asked, of } = start({ refuses: ["b"] });
  await arranging.archive([conversation("a"), conversation("b")], true);
  assert.deepEqual(of("problem"), ["It was changed."]);
  assert.equal(of("done")[0].text, "The chat is archived.");
  await of("done")[0].undo();
  assert.deepEqual(asked[1], [{ id: "a", archived: false }]);
});

test("without a server nothing is said to be done", async () => {
  const { arranging, of } = start({ fails: true });
  assert.equal(await arranging.pin([conversation("a")], true), false);
  assert.deepEqual(of("done"), []);
  assert.deepEqual(of("problem"), ["The server cannot be reached."]);
});

test("an undo that fails says so, and goes on with what is left", async () => {
  const { arranging, asked, api, of } = start();
  const many = Array.from({ length: 501 }, (_, n) => conversation(`c${n}`, { archived: false }));
  await arranging.archive(many, true);
  const [{ undo }] = of("done");
  let numCalls = 0;
  const { arrange } = api;
  api.arrange = (changes) => {
    numCalls += 1;
    if (numCalls === 2) throw new Error("The server cannot be reached.");
    return arrange(changes);
  };
  await assert.rejects(undo, { message: "The server cannot be reached." });
  assert.deepEqual(of("problem"), [], "whoever asked for it says so");
  assert.equal((await undo()).size, 501);
  assert.deepEqual(asked.slice(2).map((changes) => changes.length), [500, 1]);
});

test("many chats go in portions that the server takes", async () => {
  const { arranging, asked, of } = start();
  const many = Array.from({ length: 1201 }, (_, n) => conversation(`c${n}`, { archived: false }));
  await arranging.archive(many, true);
  assert.deepEqual(asked.map((changes) => changes.length), [500, 500, 201]);
  assert.equal(of("done")[0].text, "1,201 chats are archived.");
});
