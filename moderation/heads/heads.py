"""Probabilities of the categories, from vectors of the built-in embedding model and the words.

A logistic head for each category on both; trained, calibrated and measured by
`python -m moderation.heads train` (see REPORT.md), and here nothing but a product of matrices.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.categories import HEAD_CATEGORIES, Scores, parent
from moderation.heads.features import NUM_BUCKETS, n_grams

WEIGHTS = Path(__file__).parent / "weights.npz"
THRESHOLDS = Path(__file__).parent / "thresholds.toml"
NUM_DIMENSIONS = 384


class Heads:
    """The committed weights, or those of another file. Raises OSError or ValueError for a bad one."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        with np.load(path, allow_pickle=False) as found:
            self.digest = str(found["digest"])
            """Of the examples that they were trained on."""
            self._of_vector = found["of_vector"].astype(np.float32)  # (NUM_DIMENSIONS, categories)
            self._of_words = found["of_words"].astype(np.float32)  # (NUM_BUCKETS, categories)
            self._bias = found["bias"].astype(np.float32)
            names = tuple(found["categories"].tolist())
        shapes = (self._of_vector.shape, self._of_words.shape, self._bias.shape)
        size = len(HEAD_CATEGORIES)
        if names != HEAD_CATEGORIES or shapes != (
            (NUM_DIMENSIONS, size),
            (NUM_BUCKETS, size),
            (size,),
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


@cache
def shipped_thresholds() -> Mapping[str, float]:
    """From which probability on a category counts as found; how they were chosen stands in the file."""
    found = tomllib.loads(THRESHOLDS.read_text(encoding="utf-8"))["thresholds"]
    return {name: float(found[name]) for name in HEAD_CATEGORIES}


def _probabilities(logits: NDArray[np.float32]) -> Scores:
    values = 1 / (1 + np.exp(-np.clip(logits.astype(np.float64), -40, 40)))
    found = dict(zip(HEAD_CATEGORIES, values.tolist(), strict=True))
    for name in HEAD_CATEGORIES:
        if (over := parent(name)) and found[over] < found[name]:
            found[over] = found[name]  # whoever threatens in hate hates
    return found
