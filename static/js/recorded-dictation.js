// @ts-check
/**
 * Dictation that a model of this site writes down: recorded first, sent once somebody is done. What was
 * said is kept while it could not be written down, so that it can be tried again.
 */

import { putIn } from "./dictation-bar.js";
import { setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { Recording } from "./recording.js";

const MOST_S = 600;
const WARN_S = 30; // before that
const TICK_MS = 250;
const MICROPHONE = {
  NotAllowedError: gettext("This page may not use the microphone. Allow it in the browser, beside the address."),
  NotFoundError: gettext("No microphone was found."),
};
const REFUSED = {
  0: gettext("The server cannot be reached. What you said is kept until you close this."),
  400: gettext("The recording could not be read."),
  404: gettext("There is no model any more that writes speech down."),
  413: gettext("The recording is too long."),
};
const CAN_HELP = (/** @type {number} */ status) => status === 0 || status === 429 || status >= 500;

/**
 * @param {import("./dictation-bar.js").Composer} composer
 * @param {import("./dictation-bar.js").Bar} bar
 * @param {import("./dictation-bar.js").Level} level
 */
export async function recordInto({ input, transcribe }, bar, level) {
  const { selectionStart, selectionEnd } = input;
  const sound = await record(bar, level);
  const text = sound && (await written(sound, bar, transcribe));
  if (text) putIn(input, text, selectionStart, selectionEnd);
}

/**
 * @param {import("./dictation-bar.js").Bar} bar
 * @param {import("./dictation-bar.js").Level} level
 * @returns {Promise<Blob | null>} null: cancelled, or somebody was told why there is nothing
 */
async function record(bar, level) {
  /** @type {Recording} */
  let recording;
  try {
    recording = await Recording.begin();
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    await bar.tell(MICROPHONE[/** @type {keyof typeof MICROPHONE} */ (name)] ?? gettext("The microphone could not be used."));
    return null;
  }
  let ticking = 0;
  try {
    level.begin(recording.stream);
    /** @type {"done" | "cancel"} */
    const choice = await new Promise((resolve) => {
      bar.listen(resolve);
      recording.onEnded = () => resolve("done");
      ticking = setInterval(() => tick(recording.seconds, bar, resolve), TICK_MS);
      tick(0, bar, resolve);
    });
    if (choice === "done") return await recording.finish();
  } catch {
    await bar.tell(gettext("Nothing was heard."));
  } finally {
    clearInterval(ticking);
    setText(bar.time, "");
    level.end();
    recording.release();
  }
  return null;
}

/**
 * @param {number} seconds that it lasts
 * @param {import("./dictation-bar.js").Bar} bar
 * @param {(choice: "done") => void} resolve
 */
function tick(seconds, bar, resolve) {
  const whole = Math.floor(seconds);
  setText(bar.time, `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`);
  if (whole >= MOST_S - WARN_S) bar.say(gettext("Listening, for half a minute more"));
  if (seconds >= MOST_S) resolve("done");
}

/**
 * @param {Blob} sound
 * @param {import("./dictation-bar.js").Bar} bar
 * @param {(sound: Blob, signal: AbortSignal) => Promise<string>} transcribe
 * @returns {Promise<string>} "" where it was given up, or nothing was said
 */
async function written(sound, bar, transcribe) {
  for (;;) {
    const giving = new AbortController();
    bar.wait(() => giving.abort());
    try {
      const text = (await transcribe(sound, giving.signal)).trim();
      if (!text) await bar.tell(gettext("Nothing was heard."));
      return text;
    } catch (error) {
      if (giving.signal.aborted) return "";
      const { status = 500, message = "" } = /** @type {{status?: number, message?: string}} */ (error);
      const words = REFUSED[/** @type {keyof typeof REFUSED} */ (status)] ?? (status === 429 && message ? message : unwritten());
      if (!CAN_HELP(status)) {
        await bar.tell(words);
        return "";
      }
      if ((await bar.ask(words, gettext("Try again"))) === "cancel") return "";
    }
  }
}

function unwritten() {
  return gettext("It could not be written down now. What you said is kept until you close this.");
}
