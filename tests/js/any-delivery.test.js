import assert from "node:assert/strict";
import { test } from "node:test";

import { textOf } from "../../static/js/parts.js";
import { ChatSession } from "../../static/js/session.js";
import { ChatSocket } from "../../static/js/socket.js";
import { conversation, FakeClock, fakeNetwork, message } from "./fakes.js";

const RUN = "r1";
const NUM_ROUNDS = 300;

/** Pseudo-random numbers from a seed, so that a failure can be repeated. */
function numbersFrom(seed) {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

/** The events of an answer: texts with characters of every width, a tool between, an end. */
function randomLog(random) {
  const words = ["a", "ß", "漢字", "🙂", " and ", "\n\n", "👩‍👩‍👧", "end."];
  const log = [{ kind: "started", model: "tiny", revision: "1", seed: "1", turn: 0 }];
  let offset = 0;
  for (let left = 1 + random(25); left > 0; left--) {
    if (random(8) === 0) log.push({ kind: "resumed" });
    const text = words[random(words.length)];
    log.push({ kind: "delta", part: "text", offset, text });
    offset += [...text].length;
  }
  const measured = { usage: null, timings: null };
  if (random(3)) log.push({ kind: "finished", reason: "stop", ...measured });
  else log.push({ kind: "stopped", chars: random(offset + 1), ...measured });
  return log;
}

/** What the events say together; the server saves the same. */
function joined(log) {
  const deltas = log.filter(({ kind }) => kind === "delta").map(({ text }) => text).join("");
  const end = log.at(-1);
  return end.kind === "stopped" ? [...deltas].slice(0, end.chars).join("") : deltas;
}

/** The server of docs/socket.md, on a line that breaks, repeats itself and overtakes itself. */
class Line {
  #numWritten = 0;
  #numHeard = 0;
  #queue = [];
  #isOpen = true;

  constructor(log, network, clock, random) {
    Object.assign(this, { log, network, clock, random });
  }

  get #all() {
    return this.log.map((event, index) => ({
      type: "run.event", run: RUN, message: "a1", seq: index + 1, event,
    }));
  }

  write() {
    if (this.#numWritten === this.log.length) return;
    const frame = this.#all[this.#numWritten++];
    if (this.#isOpen) this.#queue.push(frame);
  }

  deliver() {
    this.#hearPage();
    const frame = this.#queue.shift();
    if (frame && this.#isOpen) this.network.last.says(frame);
  }

  repeat() {
    if (this.#isOpen && this.#numWritten) this.network.last.says(this.#all[this.random(this.#numWritten)]);
  }

  overtake() {
    const at = this.random(Math.max(1, this.#queue.length - 1));
    const [frame] = this.#queue.splice(at, 1);
    if (frame) this.#queue.splice(this.random(this.#queue.length + 1), 0, frame);
  }

  cut() {
    if (!this.#isOpen) return;
    this.#queue = [];
    this.#isOpen = false;
    this.network.last.drops();
  }

  mend() {
    if (this.#isOpen) return;
    this.clock.pass(60_000); // the page tries again by itself
    this.#numHeard = 0;
    this.#isOpen = true;
    this.network.last.opens();
    this.#hearPage();
  }

  /** Nothing is lost on a line that holds: all that was written and asked for arrives. */
  settle() {
    this.mend();
    while (this.#numWritten < this.log.length) this.write();
    this.#hearPage();
    while (this.#queue.length) this.deliver();
  }

  #hearPage() {
    const { sent } = this.network.last;
    for (; this.#numHeard < sent.length; this.#numHeard++) {
      const { type, after } = sent[this.#numHeard];
      if (type === "run.follow") this.#queue.push(...this.#all.slice(after, this.#numWritten));
    }
  }
}

test("whatever the line does, the page shows the joined events in the end", async () => {
  for (let seed = 1; seed <= NUM_ROUNDS; seed++) {
    const random = numbersFrom(seed);
    const log = randomLog(random);
    const clock = new FakeClock();
    const network = fakeNetwork();
    const socket = new ChatSocket("ws://here", {
      ...clock.surroundings, WebSocket: network.WebSocket, random: () => 1,
    });
    const session = new ChatSession(socket, { conversation: () => new Promise(() => {}) });
    socket.connect();
    network.last.opens();
    session.send({ text: "hi", model: null, clientId: "x" });
    network.last.says({
      type: "message.accepted", client_id: "x", run: RUN,
      conversation: conversation("c1", { version: 2 }),
      message: message("u1", null, "user", "hi", { chosen: 2 }),
      answer: message("a1", "u1", "assistant", "", { status: "running", run: RUN, parts: [], chosen: 2 }),
    });
    const line = new Line(log, network, clock, random);
    const shown = () => textOf(session.store.shown("a1").parts);
    const deltas = log.filter(({ kind }) => kind === "delta").map(({ text }) => text).join("");
    for (let step = 0; step < 80; step++) {
      const act = ["write", "write", "deliver", "deliver", "deliver", "repeat", "overtake", "cut", "mend"];
      line[act[random(act.length)]]();
      assert.ok(deltas.startsWith(shown()), `seed ${seed}: nothing but a beginning is ever shown`);
    }
    line.settle();
    assert.equal(shown(), joined(log), `seed ${seed}`);
    assert.equal(session.store.liveRun, null, `seed ${seed}`);
  }
});
