import assert from "node:assert/strict";
import { test } from "node:test";

import { DeviceVoice } from "../../static/js/device-voice.js";

class Utterance {
  constructor(text) {
    this.text = text;
  }
}

const voice = (lang, localService, more = {}) => ({ lang, localService, ...more });

function deviceWith(...voices) {
  const synthesis = {
    queue: [],
    listeners: [],
    getVoices: () => voices,
    speak: (utterance) => synthesis.queue.push(utterance),
    cancel: () => (synthesis.queue = []),
    pause: () => {},
    resume: () => {},
    addEventListener: (_, listener) => synthesis.listeners.push(listener),
  };
  return { synthesis, device: new DeviceVoice(synthesis, Utterance) };
}

test("only a voice of the device itself is asked, and one that knows the language", async () => {
  const own = voice("de_AT", true);
  const { device, synthesis } = deviceWith(voice("de-DE", false), own, voice("en-GB", true));
  const spoken = device.speak(["Hallo.", "Du."], "de");
  assert.deepEqual(synthesis.queue.map(({ text, lang }) => [text, lang]), [["Hallo.", "de_AT"], ["Du.", "de_AT"]]);
  assert.ok(synthesis.queue.every((utterance) => utterance.voice === own));
  synthesis.queue[1].onend();
  await spoken;
  assert.equal(device.voiceFor("fr"), undefined);
  await assert.rejects(device.speak(["Bonjour."], "fr"));
});

test("of several the device's own choice is taken", () => {
  const usual = voice("en-US", true, { default: true });
  assert.equal(deviceWith(voice("en-GB", true), usual).device.voiceFor("en"), usual);
});

test("voices that are found late are waited for, and voices elsewhere are none", async () => {
  assert.ok(!(await deviceWith(voice("en", false)).device.isThere()));
  assert.ok(await deviceWith(voice("en", true)).device.isThere());
  assert.ok(!(await new DeviceVoice(undefined, undefined).isThere()));
  const voices = [];
  const { device, synthesis } = deviceWith();
  synthesis.getVoices = () => voices;
  const isThere = device.isThere();
  voices.push(voice("en", true));
  synthesis.listeners[0]();
  assert.ok(await isThere);
});

test("what is stopped has ended", async () => {
  const { device, synthesis } = deviceWith(voice("en", true));
  const spoken = device.speak(["One."], "en");
  device.stop();
  await spoken;
  assert.deepEqual(synthesis.queue, []);
});
