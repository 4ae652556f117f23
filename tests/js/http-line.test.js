import assert from "node:assert/strict";
import { test } from "node:test";

import { HttpLine } from "../../static/js/http-line.js";
import { ChatSocket } from "../../static/js/socket.js";
import { FakeClock, fakeNetwork } from "./fakes.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** What a page reads a line with, and what it posts to; the test answers each request by hand. */
function fakeHttp() {
  const posts = [];
  const http = { source: null, posts };
  http.EventSource = class {
    listeners = {};
    constructor(url) {
      this.url = url;
      http.source = this;
    }
    addEventListener(name, listener) {
      this.listeners[name] = listener;
    }
    close() {
      this.isClosed = true;
    }
  };
  http.fetch = (url, { body }) => new Promise((resolve, reject) => posts.push({
    url, frames: JSON.parse(body), answer: (status) => resolve({ status }), fail: () => reject(new Error("offline")),
  }));
  return http;
}

function line() {
  const http = fakeHttp();
  const made = new HttpLine("/line/", http);
  const heard = [];
  made.onclose = ({ code }) => heard.push(code);
  return { http, line: made, heard };
}

test("frames go one request after the other, in their order, none twice", async () => {
  const { http, line: made } = line();
  const sent = Array.from({ length: 250 }, (_, n) => `frame ${n}`);
  for (const text of sent) made.send(text);
  assert.equal(http.posts.length, 1, "the first one is on its way, the others wait");
  for (let at = 0; at < http.posts.length; at += 1) {
    http.posts[at].answer(202);
    await turn();
  }
  assert.deepEqual(http.posts.flatMap(({ frames }) => frames), sent);
  assert.ok(http.posts.length <= 4);
  assert.match(http.posts[0].url, /^\/line\/[0-9a-f]{32}$/);
});

for (const [what, fail, code] of [
  ["a refusal", (post) => post.answer(500), 1006],
  ["a lost network", (post) => post.fail(), 1006],
  ["too long a frame", (post) => post.answer(413), 1009],
]) {
  test(`${what} closes the line once, and nothing more is sent`, async () => {
    const { http, line: made, heard } = line();
    made.send("one");
    made.send("two");
    fail(http.posts[0]);
    await turn();
    made.send("three");
    http.source.onerror();
    assert.deepEqual(heard, [code]);
    assert.equal(http.posts.length, 1);
    assert.ok(http.source.isClosed);
  });
}

test("the server's word closes it with its code", () => {
  const { http, heard } = line();
  http.source.listeners.close({ data: '{"code": 4401}' });
  assert.deepEqual(heard, [4401]);
});

function start() {
  const clock = new FakeClock();
  const network = fakeNetwork();
  const lines = [];
  const makeLine = () => {
    const http = fakeHttp();
    lines.push(http);
    return new HttpLine("/line/", http);
  };
  const socket = new ChatSocket("ws://here/ws/chat/", { ...clock.surroundings, WebSocket: network.WebSocket, random: () => 1, loadLine: async () => makeLine });
  socket.connect();
  return { clock, network, lines, socket };
}

const hello = (http) => {
  http.source.onopen();
  http.source.onmessage({ data: '{"type": "hello", "models": []}' });
};

test("where no WebSocket gets through the page speaks by HTTP, and goes on so", async () => {
  const { clock, network, lines, socket } = start();
  network.last.drops();
  await turn(); // what speaks by HTTP is loaded
  clock.pass(500);
  network.last.drops();
  clock.pass(1000);
  assert.deepEqual([network.sockets.length, lines.length], [2, 1]);
  hello(lines[0]);
  assert.equal(socket.state, "open");
  socket.follow("run", () => 3);
  await turn();
  assert.deepEqual(lines[0].posts[0].frames.map((text) => JSON.parse(text).type), ["run.follow"]);
  lines[0].source.onerror();
  clock.pass(500);
  assert.deepEqual([network.sockets.length, lines.length], [2, 2], "it has worked: no WebSocket is tried first");
  lines[1].source.onerror();
  clock.pass(1000);
  assert.equal(network.sockets.length, 3, "it does not any more: both are tried again");
});

test("a handshake that is swallowed is given up", () => {
  const { clock, network, socket } = start();
  clock.pass(10_000);
  assert.ok(network.sockets[0].closed);
  assert.equal(socket.state, "waiting");
});

test("a server that is away is asked both ways, without end", async () => {
  const { clock, network, lines, socket } = start();
  for (let attempt = 0; attempt < 12; attempt += 1) {
    const isHttp = lines.length > 0 && !lines.at(-1).source.isClosed;
    if (isHttp) lines.at(-1).source.onerror();
    else network.last.drops();
    await turn();
    clock.pass(socket.retryAt - clock.now);
  }
  assert.equal(network.sockets.length + lines.length, 13);
  assert.ok(lines.length >= 5 && network.sockets.length >= 6);
});
