import assert from "node:assert/strict";
import { test } from "node:test";

import { whatWasSet } from "../../static/js/chat-setup-dialog.js";

const NINA = { system_prompt: "You are Nina.", history_strategy: null, parameters: { temperature: 0, top_p: 0.5 } };
const UNSET = { system_prompt: "", history_strategy: "", parameters: {} };

test("what the assistant brings is not the chat's own", () => {
  const same = { system_prompt: NINA.system_prompt, history_strategy: "", parameters: { top_p: 0.5, temperature: 0 } };
  assert.deepEqual(whatWasSet(same, NINA), {});
  assert.deepEqual(whatWasSet(UNSET, {}), {});
});

test("what differs from it is", () => {
  const wanted = { system_prompt: "You are Otto.", history_strategy: "summary", parameters: { temperature: 1, top_p: 0.5 } };
  assert.deepEqual(whatWasSet(wanted, NINA), wanted);
  assert.deepEqual(whatWasSet(wanted, {}), wanted);
});

test("parameters can be taken away, and an empty prompt is the assistant's", () => {
  assert.deepEqual(whatWasSet(UNSET, NINA), { parameters: {} });
});
