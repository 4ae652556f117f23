"""Logistic heads: what they read of a text, and what they say of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moderation.heads.features import NGrams

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Inputs:
    """vectors: (texts, dimensions), and the n-grams of the same texts."""

    vectors: NDArray[np.float32]
    words: NGrams

    def of(self, indices: NDArray[np.int64]) -> "Inputs":
        return Inputs(self.vectors[indices], self.words.of(indices))


@dataclass(frozen=True, slots=True)
class Weights:
    """Of logistic heads, one for each output."""

    of_vector: NDArray[np.float32]  # (dimensions, outputs)
    of_words: NDArray[np.float32]  # (NUM_BUCKETS, outputs)
    bias: NDArray[np.float32]

    def logits(self, inputs: Inputs) -> Floats:
        """(texts, outputs), by one product: the last bits of a row depend on how many there are."""
        found = inputs.vectors @ self.of_vector + inputs.words.times(self.of_words) + self.bias
        return found.astype(np.float64)

    def logits_by_row(self, inputs: Inputs) -> Floats:
        """(texts, outputs), so that a batch equals its parts to the last bit."""
        by_words = inputs.words.times(self.of_words)
        rows = [
            row @ self.of_vector + of_words + self.bias
            for row, of_words in zip(inputs.vectors, by_words, strict=True)
        ]
        found: Floats = np.array(rows, np.float64).reshape(len(rows), self.bias.size)
        return found

    def of(self, columns: list[int]) -> "Weights":
        """Those of some outputs."""
        return Weights(self.of_vector[:, columns], self.of_words[:, columns], self.bias[columns])

    def scaled(self, scales: Floats, shifts: Floats) -> "Weights":
        """With logits of a scale and a shift for each output."""
        return Weights(
            (self.of_vector * scales).astype(np.float32),
            (self.of_words * scales).astype(np.float32),
            (self.bias * scales + shifts).astype(np.float32),
        )
