"""What is read from the words themselves, beside their vector: hashed n-grams.

The vector knows the meaning, in English; the n-grams know the wording: forged delimiters, other
languages, slang and misspellings.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from moderation.heads.concepts import concepts_of

NUM_BUCKETS = 1 << 15
_MAX_WORDS = 256  # as much as the model reads, about
_CHARACTERS = 4
_OF_CONCEPT = 0.15
_AT_ONCE = 64  # texts, so that their rows stay in the processor's cache
_WORD = re.compile(r"[^\W_]+|[^\w\s]")
_CJK = re.compile(r"[぀-ヿ㐀-鿿]")
_INVISIBLE = re.compile(r"[­​-‏‪-‮⁠-⁤﻿\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class NGrams:
    """Buckets of all texts in a row, those of text i at `starts[i]:starts[i + 1]`; each counts as
    `values` says. Every text has at least one."""

    buckets: NDArray[np.int64]
    values: NDArray[np.float32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def times(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """weights: (NUM_BUCKETS, outputs). Returns (texts, outputs)."""
        found = np.zeros((len(self), weights.shape[1]), np.float32)
        for first in range(0, len(self), _AT_ONCE):
            starts = self.starts[first : first + _AT_ONCE + 1]
            places = slice(starts[0], starts[-1])
            rows = weights[self.buckets[places]].astype(np.float32, copy=False)
            rows *= self.values[places, None]
            np.add.reduceat(
                rows, starts[:-1] - starts[0], axis=0, out=found[first : first + _AT_ONCE]
            )
        return found

    def of(self, indices: NDArray[np.int64]) -> "NGrams":
        """Those of some texts."""
        spans = [np.arange(self.starts[i], self.starts[i + 1]) for i in indices]
        places = np.concatenate(spans)
        starts = np.concatenate([[0], np.cumsum([len(span) for span in spans])])
        return NGrams(self.buckets[places], self.values[places], starts.astype(np.int64))


def n_grams(texts: Sequence[str]) -> NGrams:
    """Words, pairs of words, and runs of four characters, of length 1 together for each text; and
    concepts, which count the same in a long text."""
    buckets: list[int] = []
    values: list[float] = []
    starts = [0]
    for text in texts:
        lowered = plain(text)
        grams = _buckets(lowered)
        concepts = sorted({_bucket(f"k{one}") for one in concepts_of(lowered)})
        buckets += grams + concepts
        values += [len(grams) ** -0.5] * len(grams) + [_OF_CONCEPT] * len(concepts)
        starts.append(len(buckets))
    return NGrams(
        np.array(buckets, np.int64), np.array(values, np.float32), np.array(starts, np.int64)
    )


def plain(text: str) -> str:
    """In lower case, without invisible characters, and wide or styled letters as ordinary ones."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).lower()


def _buckets(text: str) -> list[int]:
    """Of a text that is `plain`."""
    words = _WORD.findall(text)[:_MAX_WORDS]
    return sorted({_bucket(one) for one in _grams(words)})


def _bucket(gram: str) -> int:
    return crc32(gram.encode()) % NUM_BUCKETS


def _grams(words: list[str]) -> Iterator[str]:
    yield "0"  # so that no text has none
    for word in words:
        yield f"1{word}"
        framed = f"<{word}>"
        size = 2 if _CJK.search(word) else _CHARACTERS
        for at in range(len(framed) - size + 1):
            yield f"c{framed[at : at + size]}"
    for first, second in pairwise(["<", *words, ">"]):
        yield f"2{first} {second}"
