"""Probabilities of the categories, from vectors of the built-in embedding model and the words.

A logistic head for each category on both, and some for orders to a machine within a text; trained,
calibrated and measured by `python -m moderation.heads train` (see REPORT.md), and here nothing but
products.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.categories import HEAD_CATEGORIES, INJECTION_CATEGORIES, Scores, parent, worst
from moderation.heads.features import NUM_BUCKETS, n_grams
from moderation.windows import Part, Read, words_in

WEIGHTS = Path(__file__).parent / "weights.npz"
THRESHOLDS = Path(__file__).parent / "thresholds.toml"
NUM_DIMENSIONS = 384
NUM_PIECE_DIMENSIONS = 2 * NUM_DIMENSIONS + 3
OUTPUTS = (*HEAD_CATEGORIES, "planted")
"""Of a window: the categories, and an order to a machine within a document. That is a `prompt_injection`
too, but has so little in common with one that somebody writes to an assistant that a head for both finds
less of either."""
PIECE_OUTPUTS = ("foreign", "planted")
"""Of a piece: a task that the text around it doesn't call for, and an order to a machine."""
ATTACK_OUTPUTS = (*INJECTION_CATEGORIES, "planted")
Vectors = Mapping[str, NDArray[np.float32]]
# Beside vectors of length 1.
_LIKENESS = 2.0
_OF_PLACE = 0.5
OF_LENGTH = 0.5
"""By how much a window's logit for an attack falls for each time that its text has e times as many: each
window is one more that can be mistaken. By 1 a text of many would be flagged no more often than one of
few, if windows were mistaken independently; but then more attacks in short documents are missed."""
_IS_ATTACK = np.array([name in ATTACK_OUTPUTS for name in OUTPUTS], np.float32)
_NOTHING = dict.fromkeys(HEAD_CATEGORIES, 0.0)


class Heads:
    """The committed weights, or those of another file. Raises OSError or ValueError for a bad one."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        with np.load(path, allow_pickle=False) as found:
            self.digest = str(found["digest"])
            """Of the examples that they were trained on."""
            self.adapter = str(found["adapter"])
            """The revision of the adapter whose vectors they judge."""
            self._of_vector = found["of_vector"].astype(np.float32)  # (NUM_DIMENSIONS, outputs)
            self._of_words = found["of_words"].astype(np.float32)  # (NUM_BUCKETS, outputs)
            self._bias = found["bias"].astype(np.float32)
            self._piece_of_vector = found["piece_of_vector"].astype(np.float32)
            self._piece_of_words = found["piece_of_words"].astype(np.float32)
            self._piece_bias = found["piece_bias"].astype(np.float32)
            names = tuple(found["categories"].tolist())
        shapes = (
            *(self._of_vector.shape, self._of_words.shape, self._bias.shape),
            *(self._piece_of_vector.shape, self._piece_of_words.shape, self._piece_bias.shape),
        )
        size, of_piece = len(OUTPUTS), len(PIECE_OUTPUTS)
        if names != HEAD_CATEGORIES or shapes != (
            *((NUM_DIMENSIONS, size), (NUM_BUCKETS, size), (size,)),
            *((NUM_PIECE_DIMENSIONS, of_piece), (NUM_BUCKETS, of_piece), (of_piece,)),
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
        return [_probabilities(row) for row in self._logits(given, texts)]

    def _logits(
        self, given: NDArray[np.float32], texts: Sequence[str]
    ) -> list[NDArray[np.float32]]:
        # Not one product of all: BLAS rounds a row by how many there are, and a batch equals its parts.
        by_meaning = [row @ self._of_vector for row in given]
        by_words = n_grams(texts).times(self._of_words)
        return [
            of_vector + of_words + self._bias
            for of_vector, of_words in zip(by_meaning, by_words, strict=True)
        ]

    def judge(self, texts: Sequence[Read], vectors: Vectors) -> list[Scores]:
        """A probability for each category, for each text: that of its worst part, where an attack has to
        be the clearer the longer the text is. `vectors` has all pieces of them that are not blank."""
        parts = [
            part
            for part in dict.fromkeys(part for text in texts for part in text.parts)
            if part.text.strip()
        ]
        rows = np.array([part_input(part, vectors) for part in parts], np.float32)
        rows = rows.reshape(-1, NUM_DIMENSIONS)
        logits = dict(zip(parts, self._logits(rows, [part.text for part in parts]), strict=True))
        found = [
            _worst_of([logits[part] for part in text.parts if part in logits]) for text in texts
        ]
        for place, text in enumerate(texts):
            if text.pieces:
                order = max(self._score_pieces(text, vectors))
                found[place] = worst([found[place], {"prompt_injection": order}])
        return found

    def _score_pieces(self, text: Read, vectors: Vectors) -> list[float]:
        """How likely each piece is an order to a machine, which the text around it doesn't call for."""
        rows = piece_inputs(text, vectors)
        by_meaning = [row @ self._piece_of_vector for row in rows]
        by_words = n_grams(text.pieces).times(self._piece_of_words)
        return [
            float(_sigmoid(of_vector + of_words + self._piece_bias).max())
            for of_vector, of_words in zip(by_meaning, by_words, strict=True)
        ]


def _worst_of(windows: Sequence[NDArray[np.float32]]) -> Scores:
    """Of a text, by the logits of its windows; see `OF_LENGTH`."""
    if not windows:
        return _NOTHING
    return _probabilities(np.max(windows, axis=0) - OF_LENGTH * np.log(len(windows)) * _IS_ATTACK)


def part_input(part: Part, vectors: Vectors) -> NDArray[np.float32]:
    """Its vector where it was read as a whole, else the mean of its pieces by their words."""
    if len(part.pieces) == 1:
        return vectors[part.pieces[0]]
    return _unit(_weights(part.pieces) @ _rows(part.pieces, vectors))


def piece_inputs(text: Read, vectors: Vectors) -> NDArray[np.float32]:
    """For each piece its meaning, that of all others, how alike these are, and if it's first or last."""
    own = _rows(text.pieces, vectors)
    weighted = own * _weights(text.pieces)[:, None]
    others = weighted.sum(axis=0) - weighted
    others = others / np.maximum(np.linalg.norm(others, axis=1, keepdims=True), 1e-6)
    place = np.zeros((len(own), 2), np.float32)
    place[0, 0] = place[-1, 1] = _OF_PLACE
    alike = _LIKENESS * (own * others).sum(axis=1, keepdims=True)
    rows = np.concatenate([own, others, alike, place], axis=1)
    return rows.astype(np.float32, copy=False)


def _rows(pieces: Sequence[str], vectors: Vectors) -> NDArray[np.float32]:
    return np.array([vectors[piece] for piece in pieces], np.float32)


def _weights(pieces: Sequence[str]) -> NDArray[np.float32]:
    return np.array([words_in(piece) for piece in pieces], np.float32)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector / np.float32(max(float(np.linalg.norm(vector)), 1e-6))
    return found


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
    *of_categories, planted = values.tolist()
    found = dict(zip(HEAD_CATEGORIES, of_categories, strict=True))
    found["prompt_injection"] = max(found["prompt_injection"], planted)
    for name in HEAD_CATEGORIES:
        if (over := parent(name)) and found[over] < found[name]:
            found[over] = found[name]  # whoever threatens in hate hates
    return found
