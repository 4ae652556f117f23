"""Sound of any rate at another one, piece by piece: a windowed sinc, whose phases are computed once.

Source: Smith, "Digital Audio Resampling Home Page" (bandlimited interpolation); Kaiser's window.
"""

from math import gcd

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
_ZEROS = 16  # of the sinc on either side
_BETA = 8.6  # of the window: what is beyond the band comes through 80 dB weaker
_BLOCK = 4_096  # output samples at once, so that their windows fit into the cache


class Resampler:
    """Feed it samples in pieces, of any size; `finish` brings what was held back."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        common = gcd(from_hz, to_hz)
        self._up, self._down = to_hz // common, from_hz // common
        self._is_same = self._up == self._down
        # What the new rate cannot have would come back as other tones.
        band = min(1.0, self._up / self._down)
        self._half = int(np.ceil(_ZEROS / band))
        self._phases = _phases(self._up, self._half, band)
        self._held: Samples = np.zeros(self._half, np.float32)
        self._next = 0  # the next output's number
        self._begin = -self._half  # the number of the first input that is held

    def feed(self, samples: Samples) -> Samples:
        if self._is_same:
            return samples
        self._held = np.concatenate((self._held, samples))
        # An output stands at input `at`, and reads from at - half + 1 to at + half.
        most = self._begin + len(self._held) - self._half
        end = -(-most * self._up // self._down) if most > 0 else 0
        found = [self._made(at, min(at + _BLOCK, end)) for at in range(self._next, end, _BLOCK)]
        self._next = max(self._next, end)
        first = self._next * self._down // self._up - self._half + 1
        if (num_gone := first - self._begin) > 0:
            self._held, self._begin = self._held[num_gone:], first
        return np.concatenate(found) if found else np.zeros(0, np.float32)

    def finish(self) -> Samples:
        return self.feed(np.zeros(self._half, np.float32))

    def _made(self, begin: int, end: int) -> Samples:
        numbers = np.arange(begin, end, dtype=np.int64)
        starts = numbers * self._down // self._up - self._half + 1 - self._begin
        windows = np.lib.stride_tricks.sliding_window_view(self._held, 2 * self._half)
        weights = self._phases[numbers * self._down % self._up]
        made: Samples = np.einsum("ij,ij->i", windows[starts], weights)
        return made


def _phases(num: int, half: int, band: float) -> Samples:
    """(phases, taps): the weights of the inputs around an output that stands so far behind one."""
    behind = np.arange(num)[:, None] / num
    distances = np.arange(-half + 1, half + 1)[None, :] - behind
    inside = np.clip(1 - (distances / half) ** 2, 0, None)
    window = np.i0(_BETA * np.sqrt(inside)) / np.i0(_BETA)
    weights = band * np.sinc(band * distances) * window
    weights /= weights.sum(1, keepdims=True)
    found: Samples = weights.astype(np.float32)
    return found
