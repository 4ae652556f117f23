import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatSocket } from "../../static/js/socket.js";
import { FakeClock, fakeNetwork } from "./fakes.js";

function start() {
  const clock = new FakeClock();
  const network = fakeNetwork();
  const socket = new ChatSocket("ws://here/ws/chat/", {
    ...clock.surroundings, WebSocket: network.WebSocket, random: () => 1,
  });
  socket.connect();
  return { clock, network, socket };
}

test("waits twice as long after each failure, up to half a minute", () => {
  const { clock, network, socket } = start();
  const waits = [];
  for (let attempt = 0; attempt < 9; attempt += 1) {
    network.last.drops();
    assert.equal(socket.state, "waiting");
    waits.push(socket.retryAt - clock.now);
    clock.pass(waits.at(-1));
  }
  assert.deepEqual(waits.slice(0, 3), [500, 1000, 2000]);
  assert.equal(waits.at(-1), 30_000);
  assert.equal(network.sockets.length, 10);
});

test("a server that greets starts the waits over, one that hangs up at once does not", () => {
  const { clock, network, socket } = start();
  network.last.drops();
  clock.pass(500);
  network.last.connects();
  network.last.drops(4429);
  assert.equal(socket.retryAt - clock.now, 1000);
  clock.pass(1000);
  network.last.opens();
  network.last.drops();
  assert.equal(socket.retryAt - clock.now, 500);
});

test("a reader can try at once", () => {
  const { network, socket } = start();
  network.last.drops();
  socket.connect();
  assert.equal(network.sockets.length, 2);
  assert.equal(socket.state, "connecting");
});

test("follows each live run again from its last seq", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  let seq = 0;
  socket.follow("run", () => seq);
  assert.equal(network.last.heard("run.follow")[0].after, 0);
  seq = 17;
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.deepEqual(network.last.heard("run.follow"), [{ type: "run.follow", run: "run", after: 17 }]);
});

test("does not follow a run again that has ended", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  socket.keep("run", () => 3);
  socket.forget("run");
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("run.follow").length, 0);
});

test("acknowledges the last seq four times a second, not each event", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  for (let seq = 1; seq <= 100; seq += 1) {
    socket.acknowledge("run", seq);
    clock.pass(10);
  }
  const seqs = network.last.heard("run.ack").map((frame) => frame.seq);
  assert.ok(seqs.length <= 4, `${seqs.length} acknowledgements in a second`);
  assert.equal(seqs[0], 25);
});

test("notices a line that died without a word", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  clock.pass(20_000);
  assert.equal(network.last.heard("ping").length, 1);
  clock.pass(8_000);
  assert.equal(network.sockets[0].closed, true);
  assert.equal(socket.state, "waiting");
});

test("asks at once where the network may be gone, and hangs up without an answer", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  socket.verify();
  assert.equal(network.last.heard("ping").length, 1);
  clock.pass(8_000);
  assert.equal(socket.state, "waiting");
});

test("a pong keeps the line", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  clock.pass(20_000);
  network.last.says({ type: "pong" });
  clock.pass(10_000);
  assert.equal(socket.state, "open");
});

test("a late close of an old socket changes nothing", () => {
  const { clock, network, socket } = start();
  network.last.opens();
  clock.pass(28_000);
  socket.connect();
  network.last.opens();
  network.sockets[0].drops();
  assert.equal(socket.state, "open");
});

test("signed out means no more attempts", () => {
  const { clock, network, socket } = start();
  network.last.drops(4401);
  clock.pass(120_000);
  assert.equal(socket.state, "signed-out");
  assert.equal(network.sockets.length, 1);
});

test("who has signed in again goes on with what was followed", () => {
  const { network, socket } = start();
  network.last.opens();
  socket.follow("r1", () => 7);
  network.last.drops(4401);
  socket.connect();
  assert.equal(network.sockets.length, 1);
  socket.connect(true);
  assert.equal(socket.state, "connecting");
  network.last.opens();
  assert.equal(socket.state, "open");
  assert.deepEqual(network.last.heard("run.follow"), [{ type: "run.follow", run: "r1", after: 7 }]);
  socket.connect(true);
  assert.equal(network.sockets.length, 2);
});

test("says whether a frame went out", () => {
  const { network, socket } = start();
  assert.equal(socket.send({ type: "ping" }), false);
  network.last.opens();
  assert.equal(socket.send({ type: "ping" }), true);
});
