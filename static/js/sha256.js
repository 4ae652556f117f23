// @ts-check
/** SHA-256 (FIPS 180-4), for pages without HTTPS too, where browsers keep crypto.subtle back. */

/** The first `count` primes. @param {number} count */
function primes(count) {
  /** @type {number[]} */
  const found = [];
  for (let n = 2; found.length < count; n += 1) if (found.every((one) => n % one)) found.push(n);
  return found;
}

/** The first 32 bits of what is behind the point. @param {number} number */
const fraction = (number) => ((number - Math.floor(number)) * 2 ** 32) | 0;

const K = Int32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes(8), (prime) => fraction(Math.sqrt(prime)));
const words = new Int32Array(64);

/**
 * Its eight words of 32 bits.
 * @param {Uint8Array} bytes
 */
export function sha256(bytes) {
  const padded = new DataView(new ArrayBuffer((bytes.length + 72) & ~63));
  new Uint8Array(padded.buffer).set(bytes);
  padded.setUint8(bytes.length, 0x80);
  padded.setUint32(padded.byteLength - 4, bytes.length * 8);
  const state = Int32Array.from(START);
  for (let at = 0; at < padded.byteLength; at += 64) addBlock(state, padded, at);
  return Uint32Array.from(state, (word) => word >>> 0);
}

/** @param {Int32Array} state @param {DataView} data @param {number} at */
function addBlock(state, data, at) {
  for (let i = 0; i < 16; i += 1) words[i] = data.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i += 1) {
    const x = words[i - 15];
    const y = words[i - 2];
    const s0 = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
    const s1 = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
    words[i] = words[i - 16] + s0 + words[i - 7] + s1;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    state[i] += word;
  });
}

/** @param {number} word @param {number} bits */
function turned(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}
