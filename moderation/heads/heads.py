"""Probabilities of the categories, from vectors of the built-in embedding model and the words.

A logistic head for each category on both, and one for how a document ends; trained, calibrated and
measured by `python -m moderation.heads train` (see REPORT.md), and here nothing but products.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.categories import HEAD_CATEGORIES, Scores, parent, worst
from moderation.heads.features import NUM_BUCKETS, n_grams
from moderation.windows import Read

WEIGHTS = Path(__file__).parent / "weights.npz"
THRESHOLDS = Path(__file__).parent / "thresholds.toml"
NUM_DIMENSIONS = 384
NUM_TAIL_DIMENSIONS = 2 * NUM_DIMENSIONS + 1
Vectors = Mapping[str, NDArray[np.float32]]
_LIKENESS = 2.0  # beside vectors of length 1
_NOTHING = dict.fromkeys(HEAD_CATEGORIES, 0.0)


class Heads:
    """The committed weights, or those of another file. Raises OSError or ValueError for a bad one."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        with np.load(path, allow_pickle=False) as found:
            self.digest = str(found["digest"])
            """Of the examples that they were trained on."""
            self._of_vector = found["of_vector"].astype(np.float32)  # (NUM_DIMENSIONS, categories)
            self._of_words = found["of_words"].astype(np.float32)  # (NUM_BUCKETS, categories)
            self._bias = found["bias"].astype(np.float32)
            self._tail_of_vector = found["tail_of_vector"].astype(np.float32)
            self._tail_of_words = found["tail_of_words"].astype(np.float32)
            self._tail_bias = found["tail_bias"].astype(np.float32)
            names = tuple(found["categories"].tolist())
        shapes = (
            *(self._of_vector.shape, self._of_words.shape, self._bias.shape),
            *(self._tail_of_vector.shape, self._tail_of_words.shape, self._tail_bias.shape),
        )
        size = len(HEAD_CATEGORIES)
        if names != HEAD_CATEGORIES or shapes != (
            *((NUM_DIMENSIONS, size), (NUM_BUCKETS, size), (size,)),
            *((NUM_TAIL_DIMENSIONS, 1), (NUM_BUCKETS, 1), (1,)),
        ):
            raise ValueError(f"{path.name} is of other categories or another model.")

    def score(
        self, vectors: Sequence[Sequence[float]] | NDArray[np.float32], texts: Sequence[str]
    ) -> list[Scores]:
        """A probability for each of HEAD_CATEGORIES, for each text.

        vectors: one of length 1 for each text, as all-minilm-l6-v2 makes them. Long texts are scored by
        their `readings`, and the `worst` counts. Raises ValueError where the numbers differ.
        """
        given = np.asarray(vectors, np.float32).reshape(-1, NUM_DIMENSIONS)
        if len(given) != len(texts):
            raise ValueError(f"{len(given)} vectors for {len(texts)} texts")
        # Not one product of all: BLAS rounds a row by how many there are, and a batch equals its parts.
        by_meaning = [row @ self._of_vector for row in given]
        by_words = n_grams(texts).times(self._of_words)
        return [
            _probabilities(of_vector + of_words + self._bias)
            for of_vector, of_words in zip(by_meaning, by_words, strict=True)
        ]

    def judge(self, texts: Sequence[Read], vectors: Vectors) -> list[Scores]:
        """A probability for each category, for each text: that of its worst part. `vectors` has all
        parts and tails of them that are not blank."""
        parts = list(dict.fromkeys(part for text in texts for part in text.parts if part.strip()))
        scores = dict(zip(parts, self.score(_rows(parts, vectors), parts), strict=True))
        found = [
            worst([_NOTHING, *(scores[part] for part in text.parts if part in scores)])
            for text in texts
        ]
        places = [place for place, text in enumerate(texts) if text.tail]
        tails = self._score_tails([texts[place] for place in places], vectors)
        for place, score in zip(places, tails, strict=True):
            found[place] = worst([found[place], {"prompt_injection": score}])
        return found

    def _score_tails(self, texts: Sequence[Read], vectors: Vectors) -> list[float]:
        """How likely the tail of each is an order to a machine, which the document doesn't call for."""
        by_meaning = [tail_input(text, vectors) @ self._tail_of_vector for text in texts]
        by_words = n_grams([text.tail for text in texts]).times(self._tail_of_words)
        return [
            float(_sigmoid(of_vector + of_words + self._tail_bias)[0])
            for of_vector, of_words in zip(by_meaning, by_words, strict=True)
        ]


def _rows(parts: Sequence[str], vectors: Vectors) -> NDArray[np.float32]:
    return np.array([vectors[part] for part in parts], np.float32).reshape(-1, NUM_DIMENSIONS)


def tail_input(text: Read, vectors: Vectors) -> NDArray[np.float32]:
    """The meaning of the tail, that of the text before it, and how alike they are."""
    tail = vectors[text.tail]
    before = _rows([window for window in text.before if window.strip()], vectors).sum(axis=0)
    before = (before / max(float(np.linalg.norm(before)), 1e-6)).astype(np.float32)
    return np.concatenate([tail, before, [_LIKENESS * float(tail @ before)]]).astype(np.float32)


@cache
def shipped_thresholds() -> Mapping[str, float]:
    """From which probability on a category counts as found; how they were chosen stands in the file."""
    found = tomllib.loads(THRESHOLDS.read_text(encoding="utf-8"))["thresholds"]
    return {name: float(found[name]) for name in HEAD_CATEGORIES}


def _sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(logits.astype(np.float64), -40, 40)))
    return found


def _probabilities(logits: NDArray[np.float32]) -> Scores:
    values = _sigmoid(logits)
    found = dict(zip(HEAD_CATEGORIES, values.tolist(), strict=True))
    for name in HEAD_CATEGORIES:
        if (over := parent(name)) and found[over] < found[name]:
            found[over] = found[name]  # whoever threatens in hate hates
    return found
