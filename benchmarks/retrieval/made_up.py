"""Passages that nobody wrote: numbers of words by Zipf's law, and vectors of a few directions."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from retrieval.terms import Terms

DIMENSIONS = 384
_HIDDEN = 24
_NOISE = 0.15
_WORDS = 50_000
_WORDS_EACH = 100


class Passages:
    """`vectors` are of length 1, as halves; `words[i]` are those of passage i."""

    def __init__(self, number: int) -> None:
        chance = np.random.default_rng(number)
        self.directions = chance.normal(size=(_HIDDEN, DIMENSIONS)).astype(np.float32)
        self.vectors = np.empty((number, DIMENSIONS), dtype=np.float16)
        for at in range(0, number, 50_000):
            size = min(50_000, number - at)
            self.vectors[at : at + size] = self._vectors(chance, size)
        ranks = np.arange(1, _WORDS + 1)
        self.weights = (1 / ranks) / (1 / ranks).sum()
        self.words = chance.choice(_WORDS, size=(number, _WORDS_EACH), p=self.weights).astype(
            np.uint16
        )

    def _vectors(self, chance: np.random.Generator, size: int) -> NDArray[np.float32]:
        hidden = chance.normal(size=(size, _HIDDEN)).astype(np.float32)
        found = hidden @ self.directions
        found += _NOISE * np.sqrt(_HIDDEN) * chance.normal(size=found.shape)
        unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    def terms(self, number: int) -> Terms:
        return Terms(Counter(f"w{word}" for word in self.words[number].tolist()), _WORDS_EACH)

    def counts(self, begin: int, end: int) -> tuple[dict[str, int], int]:
        """In how many of these passages each word is, and how many words they have."""
        nums: NDArray[np.int64] = np.zeros(_WORDS, dtype=np.int64)
        for at in range(begin, end, 10_000):
            rows = np.sort(self.words[at : min(at + 10_000, end)], axis=1)
            is_first = np.ones(rows.shape, dtype=bool)
            is_first[:, 1:] = rows[:, 1:] != rows[:, :-1]
            nums += np.bincount(rows[is_first], minlength=_WORDS)
        found = {f"w{word}": int(num) for word, num in enumerate(nums) if num}
        return found, (end - begin) * _WORDS_EACH


def questions(
    passages: Passages, begin: int, end: int, number: int
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Each of five words of one passage, common ones among them, and a vector near to its own."""
    chance = np.random.default_rng(begin + number)
    for _ in range(number):
        at = int(chance.integers(begin, end))
        words = chance.choice(passages.words[at], size=5, replace=False)
        vector = passages.vectors[at].astype(np.float32)
        vector = vector + 0.3 * chance.normal(size=DIMENSIONS).astype(np.float32) / np.sqrt(
            DIMENSIONS
        )
        yield " ".join(f"w{word}" for word in words), vector / np.linalg.norm(vector)
