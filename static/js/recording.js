// @ts-check
/**
 * What a microphone hears, recorded in this browser: nothing leaves it before somebody is done. It becomes
 * a WAV file of 16 kHz, one channel and 16 bits, which every transcription model reads. It has no DOM.
 */

const RATE_HZ = 16_000;
const HEAD_BYTES = 44;

export class Recording {
  /** @type {Blob[]} */
  #pieces = [];

  /** @param {MediaStream} stream */
  constructor(stream) {
    this.stream = stream;
    this.recorder = new MediaRecorder(stream);
    this.recorder.addEventListener("dataavailable", ({ data }) => this.#pieces.push(data));
    this.beganMs = performance.now();
    this.recorder.start();
  }

  /** Asks for the microphone. Throws a DOMException: NotAllowedError, NotFoundError and the like. */
  static async begin() {
    return new Recording(await navigator.mediaDevices.getUserMedia({ audio: true }));
  }

  get seconds() {
    return (performance.now() - this.beganMs) / 1000;
  }

  /** Called where it ends by itself: the microphone was unplugged, say. @param {() => void} ended */
  set onEnded(ended) {
    for (const track of this.stream.getTracks()) track.addEventListener("ended", ended);
  }

  /** The WAV file, and the microphone is free. Throws where there is nothing in it. @returns {Promise<Blob>} */
  async finish() {
    const stopped = new Promise((resolve) => this.recorder.addEventListener("stop", resolve));
    if (this.recorder.state === "inactive") return wavOf(await samplesOf(new Blob(this.#pieces)));
    this.recorder.stop();
    await stopped;
    this.release();
    return wavOf(await samplesOf(new Blob(this.#pieces)));
  }

  release() {
    if (this.recorder.state !== "inactive") this.recorder.stop();
    for (const track of this.stream.getTracks()) track.stop();
  }
}

/**
 * @param {Blob} recorded in whatever form the browser records
 * @returns {Promise<Float32Array>} mono, at RATE_HZ: a context decodes to the rate that it has
 */
async function samplesOf(recorded) {
  const context = new OfflineAudioContext(1, 1, RATE_HZ);
  const heard = await context.decodeAudioData(await recorded.arrayBuffer());
  const mixed = new Float32Array(heard.length);
  for (let channel = 0; channel < heard.numberOfChannels; channel += 1) {
    heard.getChannelData(channel).forEach((sample, at) => (mixed[at] += sample / heard.numberOfChannels));
  }
  return mixed;
}

/**
 * @param {Float32Array} samples from -1 to 1
 * @param {number} [rateHz]
 * @returns {Blob}
 */
export function wavOf(samples, rateHz = RATE_HZ) {
  const view = new DataView(new ArrayBuffer(HEAD_BYTES + samples.length * 2));
  const write = (/** @type {number} */ at, /** @type {string} */ word) => {
    for (const [index, letter] of [...word].entries()) view.setUint8(at + index, letter.charCodeAt(0));
  };
  write(0, "RIFF");
  view.setUint32(4, view.byteLength - 8, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // integers
  view.setUint16(22, 1, true); // one channel
  view.setUint32(24, rateHz, true);
  view.setUint32(28, rateHz * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((sample, at) => view.setInt16(HEAD_BYTES + at * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), true));
  return new Blob([view], { type: "audio/wav" });
}
