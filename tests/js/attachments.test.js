import assert from "node:assert/strict";
import { test } from "node:test";

import { Attachments } from "../../static/js/attachments.js";
import { PickedSources } from "../../static/js/picked-sources.js";

class FakeRequest extends EventTarget {
  upload = new EventTarget();
  headers = {};
  isAborted = false;
  open(method, url) {
    Object.assign(this, { method, url });
  }
  setRequestHeader(name, value) {
    this.headers[name] = value;
  }
  send(body) {
    this.body = body;
  }
  abort() {
    this.isAborted = true;
  }
  answers(status, value) {
    Object.assign(this, { status, responseText: typeof value === "string" ? value : JSON.stringify(value) });
    this.dispatchEvent(new Event("load"));
  }
}

const document = (state, more = {}) => ({
  id: "d", name: "a.pdf", version: { state, reason: "", num_chunks: 0, num_embedded: 0, ...more },
});
const settled = () => new Promise((resolve) => setTimeout(resolve));

/** A file on its way, and what the server will say of it, one answer after the other. */
function sending(answers = [], size = 100) {
  const requests = [];
  const api = {
    csrf: "token",
    async document() {
      const next = answers.shift();
      if (next instanceof Error) throw next;
      return next;
    },
  };
  const picked = new PickedSources();
  picked.open(null, { collections: [], documents: [] });
  const make = () => (requests.push(new FakeRequest()), requests.at(-1));
  const attachments = new Attachments(api, picked, 100, { make, pause: async () => {} });
  const attachment = picked.attach("a.pdf", { file: { name: "a.pdf", size } });
  attachments.send(attachment);
  return { request: requests[0], requests, picked, attachment, attachments };
}

test("a file is sent, read and ready, and tells how far it is", async () => {
  const { request, picked, attachment } = sending([
    document("parsing"), document("embedding", { num_chunks: 4, num_embedded: 1 }), document("ready"),
  ]);
  const told = [];
  picked.on("changed", () => told.push(`${attachment.state} ${attachment.progress}`));
  assert.equal(request.url, "/api/documents/attach?name=a.pdf");
  assert.equal(request.headers["X-CSRFToken"], "token");
  request.upload.dispatchEvent(Object.assign(new Event("progress"), { loaded: 1, total: 2 }));
  request.answers(201, document("queued"));
  await settled();
  assert.deepEqual([...new Set(told)], ["sending 0.5", "reading null", "reading 0.25", "ready 1"]);
  assert.deepEqual(picked.take().documents, [{ id: "d", name: "a.pdf" }]);
});

test("a file that is refused or cannot be read says why", async () => {
  const refused = sending();
  refused.request.answers(413, { error: { message: "The file is larger than 5 MiB." } });
  assert.equal(refused.attachment.problem, "The file is larger than 5 MiB.");
  const garbled = sending();
  garbled.request.answers(502, "<html>");
  assert.equal(garbled.attachment.problem, "The server answered 502.");
  const broken = sending([document("failed", { reason: "It is no PDF." })]);
  broken.request.answers(201, document("queued"));
  await settled();
  assert.equal(broken.attachment.problem, "It is no PDF.");
  for (const { picked } of [refused, garbled, broken]) assert.equal(picked.holds, "failed");
});

test("what has failed is tried again from its beginning", async () => {
  const { request, requests, picked, attachment, attachments } = sending([document("ready")]);
  request.dispatchEvent(new Event("error"));
  assert.equal(picked.holds, "failed");
  attachments.send(attachment);
  assert.deepEqual([attachment.state, attachment.progress, attachment.problem], ["sending", 0, ""]);
  requests[1].answers(201, document("queued"));
  await settled();
  assert.equal(picked.holds, null);
});

test("a file that is too large is not even sent, nor tried again", () => {
  const { requests, attachment } = sending([], 101);
  assert.equal(requests.length, 0);
  assert.equal(attachment.problem, "The file is larger than 100 bytes.");
  assert.equal(attachment.file, null);
});

test("a line that is gone for a moment is waited for, a document that is gone is not", async () => {
  const offline = Object.assign(new Error("offline"), { status: 0 });
  const back = sending([offline, offline, document("ready")]);
  back.request.answers(201, document("queued"));
  await settled();
  assert.equal(back.attachment.state, "ready");
  const gone = sending([Object.assign(new Error("There is no such document."), { status: 404 })]);
  gone.request.answers(201, document("queued"));
  await settled();
  assert.equal(gone.attachment.problem, "There is no such document.");
});

test("a file that is removed is not sent to its end, nor asked for", async () => {
  const { request, picked, attachment } = sending();
  picked.remove(attachment);
  assert.equal(request.isAborted, true);
  const read = sending([document("parsing")]);
  read.request.answers(201, document("queued"));
  read.picked.remove(read.attachment);
  await settled();
  assert.equal(read.attachment.state, "reading");
});
