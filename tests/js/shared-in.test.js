import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedText } from "../../static/js/shared-in.js";

test("what is shared is one text, with each thing once", () => {
  const link = "https://example.org/a?b=1";
  const query = (fields) => `?${new URLSearchParams(fields)}`;
  assert.equal(sharedText(query({ title: "News", text: `Look: ${link}`, url: link })), `News\nLook: ${link}`);
  assert.equal(sharedText(query({ url: link })), link);
  assert.equal(sharedText(query({ title: " ", text: "" })), "");
  assert.equal(sharedText(""), "");
  assert.equal(sharedText("?assistant=5"), "");
});
