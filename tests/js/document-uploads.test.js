import assert from "node:assert/strict";
import { test } from "node:test";

import { Uploads } from "../../static/js/document-uploads.js";

class FakeRequest extends EventTarget {
  upload = new EventTarget();
  headers = {};
  status = 0;
  responseText = "";
  isAborted = false;
  open(method, address) { this.address = address; }
  setRequestHeader(name, value) { this.headers[name] = value; }
  send(file) { this.file = file; }
  abort() { this.isAborted = true; }
  answer(status, value) {
    this.status = status;
    this.responseText = JSON.stringify(value);
    this.dispatchEvent(new Event("load"));
  }
}

function made(names) {
  const requests = [];
  const uploads = new Uploads("token", "c", () => requests[requests.push(new FakeRequest()) - 1]);
  uploads.add(names.map((name) => ({ file: { name, size: 10 }, path: name === "b" ? "x/b" : "" })));
  return { requests, uploads };
}

test("two are sent at a time, and the next when one ends, however it ends", () => {
  const { requests, uploads } = made(["a", "b", "c", "d"]);
  assert.deepEqual(requests.map(({ address }) => address), [
    "/api/collections/c/documents?name=a",
    "/api/collections/c/documents?name=b&path=x%2Fb",
  ]);
  assert.equal(requests[0].headers["X-CSRFToken"], "token");
  requests[0].answer(413, { error: { message: "Too large." } });
  requests[1].answer(201, { id: "d" });
  assert.equal(requests.length, 4);
  assert.deepEqual(uploads.items.map(({ state, problem }) => state + problem), ["failedToo large.", "sent", "sending", "sending"]);
  requests[2].dispatchEvent(new Event("error"));
  requests[3].answer(500, null ?? {});
  assert.equal(uploads.isBusy, false);
  assert.match(uploads.items[3].problem, /500/);
});

test("one that failed is tried again, one that goes on is stopped", () => {
  const { requests, uploads } = made(["a"]);
  requests[0].answer(500, {});
  uploads.retry(uploads.items[0]);
  assert.equal(requests.length, 2);
  uploads.remove(uploads.items[0]);
  assert.ok(requests[1].isAborted);
  assert.deepEqual(uploads.items, []);
});

test("a new version goes to its document", () => {
  const { requests, uploads } = made([]);
  uploads.add([{ file: { name: "a b.pdf", size: 1 }, path: "" }], "d1");
  assert.equal(requests[0].address, "/api/documents/d1/versions?name=a+b.pdf");
});
