import assert from "node:assert/strict";
import { test } from "node:test";

import { placeAt } from "../../static/js/source-panel.js";
import { viewerUrl } from "../../static/js/document-links.js";

test("an address says again what it was made of", () => {
  const place = { document: "0199a1b2-0000-7000-8000-000000000001", version: "v1", start: 10, end: 90 };
  assert.deepEqual(placeAt(viewerUrl(place)), { document: place.document, version: "v1", passage: { start: 10, end: 90 } });
});

test("without a passage there is none", () => {
  assert.deepEqual(placeAt("/documents/d"), { document: "d", version: "", passage: null });
  assert.equal(placeAt("/documents/d?start=9&end=9").passage, null);
  assert.equal(placeAt("/documents/d?start=x&end=9").passage, null);
});
