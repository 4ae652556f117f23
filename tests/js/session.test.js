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
  type: "message.accepted", client_id: clientId, run: "r1",
  conversation: conversation("c1", { version: 2 }),
  message: message("u1", null, "user", "hi", { chosen: 2 }),
  answer: message("a1", "u1", "assistant", "", {
    status: "running", run: "r1", parts: [], chosen: 2,
  }),
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

test("nothing of one account is sent in the session of another", () => {
  const { clock, network, session } = start();
  let numStrangers = 0;
  session.user = "7";
  session.on("stranger", () => (numStrangers += 1));
  network.last.drops();
  session.send({ text: "hi", model: null, clientId: "x" });
  clock.pass(500);
  network.last.connects();
  assert.equal(network.last.heard("message.send").length, 0, "nobody has said yet whose session it is");
  network.last.says({ type: "hello", models: [], user: "8" });
  assert.equal(network.last.heard("message.send").length, 0);
  assert.equal(numStrangers, 1);
  network.last.drops();
  clock.pass(1000);
  network.last.connects();
  network.last.says({ type: "hello", models: [], user: "7" });
  assert.equal(network.last.heard("message.send").length, 1);
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
  session.stop(() => 3);
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.deepEqual(network.last.heard("run.stop"), [{ type: "run.stop", run: "r1", chars: 3 }]);
});

test("a new chat that is accepted says whether it is shown", () => {
  const { network, session } = start();
  const told = [];
  session.on("accepted", ({ isNew, isShown }) => told.push([isNew, isShown]));
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  session.send({ text: "more", model: null, clientId: "y" });
  network.last.says({ ...accept("y"), message: message("u2", "a1", "user", "more") });
  session.open(null);
  session.send({ text: "another", model: null, clientId: "z" });
  session.open(null);
  network.last.says(accept("z"));
  assert.deepEqual(told, [[true, true], [false, true], [true, false]]);
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

test("a reset is drawn before the first event comes again", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says(event(1, delta("lost", 0)));
  const drawn = [];
  session.on("message", (id) => drawn.push([id, answer(session)]));
  network.last.says({ type: "run.reset", run: "r1" });
  assert.deepEqual(drawn, [["a1", ""]]);
});

test("leaving a conversation does not stop its answer, only the following", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  session.open(null);
  assert.equal(network.last.heard("run.stop").length, 0);
  assert.equal(network.last.heard("run.unfollow").length, 1);
});

test("an answer is written anew beside the failed one", () => {
  const { network, session } = start();
  session.open(conversation("c1"), [
    message("u1", null, "user", "hi"),
    message("a1", "u1", "assistant", "", { status: "failed", error: { message: "No." } }),
  ]);
  session.retake({ answer: "a1", model: "tiny", clientId: "again" });
  const [frame] = network.last.heard("answer.regenerate");
  assert.deepEqual([frame.answer, frame.model, frame.client_id], ["a1", "tiny", "again"]);
  assert.equal(session.store.path().at(-1).status, "sending");
  network.last.says({
    type: "answer.accepted", client_id: "again", run: "r2",
    conversation: conversation("c1", { version: 2 }),
    answer: message("a2", "u1", "assistant", "", {
      status: "running", run: "r2", parts: [], chosen: 2,
    }),
  });
  assert.deepEqual(session.store.path().map(({ id }) => id), ["u1", "a2"]);
  assert.equal(session.store.liveRun.run, "r2");
});

/** A page on c1 whose run r1 is being written, with a line that broke and came back. */
async function reconnected(ended) {
  const asked = [
    message("u1", null, "user", "one"),
    message("a1", "u1", "assistant", "", { status: "running", run: "r1", parts: [] }),
  ];
  const page = start({ value: { conversation: conversation("c1"), messages: [asked[0], ended] } });
  page.session.open(conversation("c1"), asked);
  page.network.last.says(event(1, delta("o", 0)));
  page.network.last.drops();
  page.clock.pass(500);
  page.network.last.opens();
  await settled();
  return page;
}

test("a run whose end is read before its events is followed no more", async () => {
  const whole = message("a1", "u1", "assistant", "one two");
  const { clock, network, session } = await reconnected(whole);
  assert.deepEqual(network.last.heard("run.unfollow"), [{ type: "run.unfollow", run: "r1" }]);
  for (let seq = 2; seq < 50; seq += 1) network.last.says(event(seq, delta("x", seq)));
  assert.equal(network.last.heard("run.unfollow").length, 1, "said once");
  assert.equal(answer(session), "one two");
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("run.follow").length, 0);
});

test("events that nobody waits for are refused, so that the server does not wait for acks", () => {
  const { clock, network, session } = start();
  session.open(conversation("c1"));
  network.last.says({ ...event(1, delta("x", 0)), run: "stray" });
  network.last.says({ ...event(2, delta("x", 1)), run: "stray" });
  assert.deepEqual(network.last.heard("run.unfollow"), [{ type: "run.unfollow", run: "stray" }]);
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  network.last.says({ ...event(1, delta("x", 0)), run: "stray" });
  assert.equal(network.last.heard("run.unfollow").length, 1, "a new line has to hear it again");
});

test("an accepted message whose answer has ended is not followed", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says({ ...accept("x"), answer: message("a1", "u1", "assistant", "done") });
  assert.equal(network.last.heard("run.unfollow").length, 1);
  assert.equal(session.store.isBusy, false);
});

test("a run that was left can be followed and left again", () => {
  const { network, session } = start();
  const messages = [
    message("u1", null, "user", "one"),
    message("a1", "u1", "assistant", "", { status: "running", run: "r1", parts: [] }),
  ];
  for (const shown of [messages, [], messages, []]) session.open(conversation("c1"), shown);
  const said = network.last.sent.filter(({ run }) => run === "r1").map(({ type }) => type);
  assert.deepEqual(said, ["run.follow", "run.unfollow", "run.follow", "run.unfollow"]);
});

test("a run that the server does not know is given up, and its answer is read", async () => {
  const { clock, network, session, saved } = start();
  const errors = [];
  session.on("error", (error) => errors.push(error));
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says(event(1, delta("part", 0)));
  const answered = message("a1", "u1", "assistant", "part and rest");
  saved.value = {
    conversation: conversation("c1"), messages: [message("u1", null, "user", "hi"), answered],
  };
  const words = "There is no such run.";
  network.last.says({ type: "error", code: "not_found", message: words, run: "r1" });
  assert.equal(session.store.isBusy, false);
  assert.equal(answer(session), "part");
  await settled();
  assert.equal(answer(session), "part and rest");
  assert.deepEqual(errors, []);
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("run.follow").length, 0);
});

test("another trouble with a run is told and gives nothing up", () => {
  const { network, session } = start();
  const errors = [];
  session.on("error", (error) => errors.push(error.code));
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  network.last.says({ type: "error", code: "chat_error", message: "Try again.", run: "r1" });
  assert.deepEqual(errors, ["chat_error"]);
  assert.equal(session.store.liveRun.run, "r1");
});

test("a read under way while a message is sent does not hide it", async () => {
  const { network, session, api } = start();
  session.open(conversation("c1"), []);
  const answers = [];
  api.conversation = () => new Promise((resolve) => answers.push(resolve));
  network.last.says({
    type: "conversation.changed", conversation: conversation("c1"), running: [],
  });
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  const old = [message("u0", null, "user", "older"), message("a0", "u0", "assistant", "0")];
  answers[0]({ conversation: conversation("c1"), messages: old });
  await settled();
  assert.deepEqual(session.store.path().map(({ id }) => id), ["u1", "a1"]);
  assert.equal(session.store.liveRun.run, "r1");
});

test("knows which messages wait for the server", () => {
  const { network, session } = start();
  session.send({ text: "hi", model: null, clientId: "x" });
  assert.equal(session.isSending("x"), true);
  session.open(null);
  assert.equal(session.isSending("x"), true, "also from another chat");
  network.last.says(accept("x"));
  assert.equal(session.isSending("x"), false);
});

test("another answer that is refused, or too large, leaves the one that was there", () => {
  for (const goesOn of [false, true]) {
    const { clock, network, session } = start();
    const rejected = [];
    session.on("rejected", ({ text, clientId }) => rejected.push([text, clientId]));
    session.open(conversation("c1"), [
      message("u1", null, "user", "hi"), message("a1", "u1", "assistant", "ho"),
    ]);
    for (const refuse of [
      (client_id) => network.last.says({ type: "error", code: "busy", message: "Full.", client_id }),
      () => network.last.drops(1009),
    ]) {
      session.retake({ answer: "a1", goesOn, clientId: `x${rejected.length}` });
      assert.equal(session.store.isBusy, true);
      refuse("x0");
      assert.deepEqual(session.store.path().map(({ id }) => id), ["u1", "a1"]);
      assert.equal(session.store.isBusy, false);
    }
    assert.deepEqual(rejected, [[null, "x0"], [null, "x1"]]);
    clock.pass(500);
    assert.equal(network.sockets.length, 2, "the line is made anew");
  }
});

test("a listener that fails leaves neither the screen nor the line as they were", () => {
  const { clock, network, session } = start();
  const paths = [];
  session.on("rejected", () => {
    throw new Error("a fault");
  });
  session.on("path", () => paths.push(session.store.path().length));
  session.send({ text: "a whole library", model: null, clientId: "x" });
  assert.throws(() => network.last.drops(1009), /a fault/);
  assert.deepEqual(paths, [2, 0]);
  clock.pass(500);
  assert.equal(network.sockets.length, 2);
});

test("a message that the server cannot read comes back, and is not sent again", () => {
  const { clock, network, session } = start();
  const rejected = [];
  session.on("rejected", ({ text }) => rejected.push(text));
  session.send({ text: "far too much", model: null, clientId: "x" });
  network.last.says({ type: "error", code: "bad_frame", message: "At most 256 KiB." });
  assert.deepEqual(rejected, ["far too much"]);
  assert.equal(session.store.isBusy, false);
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("message.send").length, 0);
});

test("a message that the line itself does not carry comes back, and is not sent again", () => {
  const { clock, network, session } = start();
  const rejected = [];
  session.on("rejected", ({ text, error }) => rejected.push([text, error.code]));
  session.send({ text: "a whole library", model: null, clientId: "x" });
  network.last.drops(1009);
  assert.deepEqual(rejected, [["a whole library", "too_large"]]);
  assert.equal(session.store.isBusy, false);
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("message.send").length, 0);
});

test("what is too large to be read is not sent, and nothing else comes back", () => {
  const { clock, network, session } = start();
  const rejected = [];
  session.on("rejected", ({ clientId, error }) => rejected.push([clientId, error.message]));
  session.send({ text: "語".repeat(200_000), model: null, clientId: "long" });
  session.send({ text: "語".repeat(350_000), model: null, clientId: "longer" });
  assert.deepEqual(network.last.heard("message.send").map(({ client_id }) => client_id), ["long"]);
  session.openTemporary();
  session.send({ text: "語".repeat(350_000), model: null, clientId: "temporary" });
  assert.deepEqual(rejected, [
    ["longer", "The message is too long to be sent."],
    ["temporary", "This temporary chat is too long to go on: all of it is sent each time. Keep it, and go on there."],
  ]);
  assert.equal(session.isSending("long"), true);
  network.last.drops();
  clock.pass(500);
  network.last.opens();
  assert.equal(network.last.heard("message.send").length, 1, "what came back is not sent again");
});

test("a refused message names its chat, also when another is shown", () => {
  const { network, session } = start();
  const rejected = [];
  session.on("rejected", ({ text, clientId, conversation: of }) => {
    rejected.push([text, clientId, of]);
  });
  session.open(conversation("c1"));
  session.send({ text: "hi", model: null, clientId: "x" });
  session.open(null);
  network.last.says({ type: "error", code: "busy", message: "Full.", client_id: "x" });
  assert.deepEqual(rejected, [["hi", "x", "c1"]]);
});

test("what the page was made with is compared with the newest list", async () => {
  const read = { conversation: conversation("c1"), messages: [] };
  const { api, session } = start({ value: read });
  const shown = { ...conversation("c1"), title: "old", updated_at: "2026-01-01", running: [] };
  session.open(shown);
  const titles = [];
  session.on("conversations", ({ title }) => titles.push(title));
  session.compare([{ ...shown, title: "new" }]);
  session.compare([]);
  assert.deepEqual(titles, ["new"]);
  assert.equal(api.numReads, 0, "another title is no other content");
  session.compare([{ ...shown, running: ["r1"] }]);
  session.compare([{ ...shown, updated_at: "2026-01-02" }]);
  await settled();
  assert.equal(api.numReads, 2);
  session.compare([conversation("c2")]);
  await settled();
  assert.equal(api.numReads, 3, "it may be in a folder, or far down the list");
});

test("a second click does not allow the next call, which nobody has read", (context) => {
  const { network, session } = start();
  let nowMs = 10_000;
  context.mock.method(Date, "now", () => nowMs);
  session.send({ text: "hi", model: null, clientId: "x" });
  network.last.says(accept("x"));
  const asks = (call) => network.last.says({
    type: "run.phase", run: "r1", message: "a1", phase: { phase: "approval", detail: call },
  });
  const allowed = () => network.last.heard("run.decide").map((frame) => frame.call);
  asks("call_1");
  session.decide("a1", true);
  nowMs += 300;
  session.decide("a1", true); // the same call: the server takes the first word
  asks("call_2");
  for (let clicks = 0; clicks < 10; clicks += 1) {
    nowMs += 200;
    session.decide("a1", true); // a key that is held down
  }
  assert.deepEqual([...new Set(allowed())], ["call_1"]);
  nowMs += 800;
  session.decide("a1", true);
  assert.equal(allowed().at(-1), "call_2");
});
