import assert from "node:assert/strict";
import { test } from "node:test";

import { AttachmentPictures } from "../../static/js/attachment-pictures.js";
import { isPicture, pictureUrl } from "../../static/js/document-links.js";
import { PickedSources } from "../../static/js/picked-sources.js";

const EMPTY = { collections: [], documents: [] };

/** Addresses of this browser: those that are in use. */
function addresses() {
  const used = new Set();
  let number = 0;
  return {
    used,
    createObjectURL: () => {
      const url = `blob:${++number}`;
      used.add(url);
      return url;
    },
    revokeObjectURL: (url) => used.delete(url),
  };
}

/** A chip of the page, as far as it matters: its sign, and what came in its place. */
function chip() {
  const made = { shown: null, querySelector: () => ({ replaceWith: (picture) => (made.shown = picture) }) };
  return made;
}

globalThis.document = { createElement: (name) => ({ name, attributes: {}, setAttribute(key, value) { this.attributes[key] = value; }, append() {}, addEventListener() {} }) };

test("a picture is shown until its file is removed, sent, or its chat forgotten", () => {
  const picked = new PickedSources();
  picked.open("c1", EMPTY);
  const urls = addresses();
  const pictures = new AttachmentPictures(picked, urls);
  const [one, two, three] = ["a.png", "b.png", "c.png"].map((name) => picked.attach(name));
  for (const attachment of [one, two, three]) {
    const place = chip();
    pictures.show(place, attachment, { type: "image/png" });
    assert.match(place.shown.attributes.src, /^blob:/);
    assert.equal(place.shown.attributes.alt, ""); // its name stands beside it
  }
  assert.equal(urls.used.size, 3);
  picked.remove(one);
  assert.deepEqual([...urls.used], ["blob:2", "blob:3"]);
  picked.open("c2", EMPTY);
  assert.equal(urls.used.size, 2); // it is still in its chat
  picked.open("c1", EMPTY);
  picked.take();
  assert.equal(urls.used.size, 0);
});

test("what browsers do not draw, or what could hold a script, keeps its sign", () => {
  const picked = new PickedSources();
  picked.open(null, EMPTY);
  const urls = addresses();
  const pictures = new AttachmentPictures(picked, urls);
  for (const type of ["image/svg+xml", "image/tiff", "application/pdf", "text/html", ""]) pictures.show(chip(), picked.attach("x"), { type });
  assert.equal(urls.used.size, 0);
});

test("pictures are known by their names, and come from a door of ours", () => {
  assert.ok(["a.PNG", "b.jpeg", "image.webp"].every(isPicture));
  assert.ok(!["a.svg", "png", "b.png.pdf", "c.html"].some(isPicture));
  assert.equal(pictureUrl("d1", 800), "/api/documents/d1/pages/1?width=800");
});
