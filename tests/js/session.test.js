import assert from "node:assert/strict";
import { test } from "node:test";

import { textOf } from "../../static/js/parts.js";
import { ChatSession } from "../../static/js/session.js";
import { ChatSocket } from "../../static/js/socket.js";
import { conversation, FakeClock, fakeNetwork, message } from "./fakes.js";

const delta = (text, offset) => ({ kind: "delta", part: "text", offset, text });

function start(saved = {}) {
  const clock = new FakeClock();
  const network = fakeNetwork();
  const socket = new ChatSocket("ws://here", {
    ...clock.surroundings, WebSocket: network.WebSocket, random: () => 1,
  });
  const api = {
    numReads: 0,
    async conversation() {
      this.numReads += 1;
      return structuredClone(saved.value);
    },
  };
  const session = new ChatSession(socket, api);
  socket.connect();
  network.last.opens();
  return { api, clock, network, session, saved };
}

const accept = (clientId) => ({
  type: "message.accepted", client_id: clientId, run: "r1", conversation: conversation("c1"),
  message: message("u1", null, "user", "hi"),
  answer: message("a1", "u1", "assistant", "", { status: "running", run: "r1", parts: [] }),
});
const event = (seq, body) => ({ type: "run.event", run: "r1", message: "a1", seq, event: body });
const answer = (session) => textOf(session.store.path().at(-1).parts);
const settled = () => new Promise((resolve) => setTimeout(resolve));

test("what could not be sent is sent once the line is back, with the same client id", () => {
  const { clock, network, session } = start();
  network.last.drops();
  session.send({ text: "hi", model: null, clientId: "x" });
  assert.equal(session.store.path().length, 2);
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("message.send")[0].client_id, "x");
});

test("a lost acceptance makes no second message", () => {
  const { clock, network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  network.last.says(accept("x"));
  network.last.says(accept("x"));
  assert.equal(session.store.path().length, 2);
});

test("a gap is asked for once, and heals", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says(event(1, delta("a", 0)));
  network.last.says(event(3, delta("c", 2)));
  network.last.says(event(4, delta("d", 3)));
  assert.deepEqual(network.last.heard("run.follow"), [{ type: "run.follow", run: "r1", after: 1 }]);
  for (const [index, letter] of [..."bcd"].entries()) {
    network.last.says(event(index + 2, delta(letter, index + 1)));
  }
  assert.equal(answer(session), "abcd");
});

test("a dropped line in the middle of an answer loses and doubles nothing", () => {
  const { clock, network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says(event(1, delta("one ", 0)));
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("run.follow")[0].after, 1);
  network.last.says(event(1, delta("one ", 0)));
  network.last.says(event(2, delta("two", 4)));
  assert.equal(answer(session), "one two");
});

test("stop before acceptance stops as soon as there is a run", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  session.stop(0);
  assert.equal(network.last.heard("run.stop").length, 0);
  network.last.says(accept("x"));
  assert.deepEqual(network.last.heard("run.stop"), [{ type: "run.stop", run: "r1", chars: 0 }]);
});

test("stop is said again after a reconnect", () => {
  const { clock, network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says(event(1, delta("one two", 0)));
  session.stop(3);
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.deepEqual(network.last.heard("run.stop"), [{ type: "run.stop", run: "r1", chars: 3 }]);
});

test("a refused send gives the text back", () => {
  const { network, session } = start();
  const rejected = [];
  session.on("rejected", (value) => rejected.push(value));
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says({ type: "error", code: "busy", message: "Full.", client_id: "x" });
  assert.equal(rejected[0].text, "hi");
  assert.equal(session.store.path().length, 0);
});

test("news of another tab are read and followed", async () => {
  const { network, session, saved } = start();
  const first = [message("u1", null, "user", "one"), message("a1", "u1", "assistant", "1")];
  session.open(conversation("c1"), first);
  saved.value = {
    conversation: conversation("c1", { version: 2 }),
    messages: [...first, message("u2", "a1", "user", "two"),
      message("a2", "u2", "assistant", "", { status: "running", run: "r2", parts: [] })],
  };
  network.last.says({
    type: "conversation.changed", conversation: conversation("c1", { version: 2 }), running: ["r2"],
  });
  await settled();
  assert.equal(session.store.path().length, 4);
  assert.deepEqual(network.last.heard("run.follow"), [{ type: "run.follow", run: "r2", after: 0 }]);
});

test("many news at once are one reading and one more", async () => {
  const { network, session, api } = start({
    value: { conversation: conversation("c1"), messages: [] },
  });
  session.open(conversation("c1"));
  for (let index = 0; index < 5; index += 1) {
    network.last.says({
      type: "conversation.changed", conversation: conversation("c1"), running: [],
    });
  }
  await settled();
  assert.equal(api.numReads, 2);
});

test("a run that ended long ago is replaced by the saved message", () => {
  const { network, session } = start();
  const user = message("u1", null, "user", "one");
  session.open(conversation("c1"), [
    user, message("a1", "u1", "assistant", "pa", { status: "running", run: "r1" }),
  ]);
  network.last.says({
    type: "run.ended", run: "r1", message: message("a1", "u1", "assistant", "part"),
  });
  assert.equal(answer(session), "part");
  assert.equal(session.store.isBusy, false);
});

test("a server that lost events starts the answer over", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says(event(1, delta("lost", 0)));
  network.last.says({ type: "run.reset", run: "r1" });
  network.last.says(event(1, delta("kept", 0)));
  assert.equal(answer(session), "kept");
});

test("leaving a conversation does not stop its answer, only the following", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  session.open(null);
  assert.equal(network.last.heard("run.stop").length, 0);
  assert.equal(network.last.heard("run.unfollow").length, 1);
});

test("retry asks the same again beside the failed answer", () => {
  const { network, session } = start();
  session.open(conversation("c1"), [
    message("u1", null, "user", "hi"),
    message("a1", "u1", "assistant", "", { status: "failed", error: { message: "No." } }),
  ]);
  session.retry({ answer: "a1", model: "tiny", clientId: "again" });
  const [frame] = network.last.heard("message.send");
  assert.equal(frame.text, "hi");
  assert.equal(frame.parent, null);
  assert.equal(frame.conversation, "c1");
  assert.equal(session.store.path().length, 2);
});
