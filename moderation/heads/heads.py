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

from moderation.categories import HEAD_CATEGORIES, INJECTION_CATEGORIES, Scores, parent
from moderation.heads.attacks import Attacks, Found
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
"""The last ones of OUTPUTS."""
Vectors = Mapping[str, NDArray[np.float32]]
# Beside vectors of length 1.
_LIKENESS = 2.0
_OF_PLACE = 0.5
_ATTACKS = slice(-len(ATTACK_OUTPUTS), None)
_NO_PIECES = np.full((1, len(PIECE_OUTPUTS)), -np.inf)
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
            self._attacks = Attacks(*found["attacks"].tolist())
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
        return [self._scores_of([row]) for row in self._logits(given, texts)]

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
        """A probability for each category, for each text: that of its worst part, and of attacks what
        all heads for them say together (`Attacks`). `vectors` has all pieces that are not blank."""
        wholes = {text: whole_of(text) for text in texts if text.pieces}
        windows = (part for text in texts for part in text.parts)
        parts = [part for part in dict.fromkeys([*windows, *wholes.values()]) if part.text.strip()]
        rows = np.array([part_input(part, vectors) for part in parts], np.float32)
        rows = rows.reshape(-1, NUM_DIMENSIONS)
        logits = dict(zip(parts, self._logits(rows, [part.text for part in parts]), strict=True))
        found = []
        for text in texts:
            own = [logits[part] for part in text.parts if part in logits]
            if text.pieces:
                pieces = self._piece_logits(text, vectors)
                found.append(self._scores_of(own, pieces, logits[wholes[text]]))
            else:
                found.append(self._scores_of(own))
        return found

    def _piece_logits(self, text: Read, vectors: Vectors) -> NDArray[np.float64]:
        """(1, PIECE_OUTPUTS), of each the highest of all pieces."""
        rows = piece_inputs(text, vectors)
        by_meaning = np.array([row @ self._piece_of_vector for row in rows])
        by_words = n_grams(text.pieces).times(self._piece_of_words)
        logits = by_meaning + by_words + self._piece_bias
        highest: NDArray[np.float64] = logits.max(axis=0, keepdims=True).astype(np.float64)
        return highest

    def _scores_of(
        self,
        windows: Sequence[NDArray[np.float32]],
        pieces: NDArray[np.float64] = _NO_PIECES,
        whole: NDArray[np.float32] | None = None,
    ) -> Scores:
        """Of a text, by the logits of its windows, the highest ones of its pieces, and its own."""
        if not windows:
            return _NOTHING
        highest = np.max(windows, axis=0).astype(np.float64)
        of_whole = highest if whole is None else whole.astype(np.float64)
        of_attacks = Found(
            highest[None, _ATTACKS],
            of_whole[None, _ATTACKS][:, : len(INJECTION_CATEGORIES)],
            pieces,
            np.array([float(len(windows))]),
        )
        (attack,), (jailbreak,) = self._attacks.probabilities(of_attacks)
        probabilities = _sigmoid(highest[: len(HEAD_CATEGORIES)])
        found = dict(zip(HEAD_CATEGORIES, probabilities.tolist(), strict=True))
        found["prompt_injection"], found["jailbreak"] = float(attack), float(jailbreak)
        for name in HEAD_CATEGORIES:
            if (over := parent(name)) and found[over] < found[name]:
                found[over] = found[name]  # whoever threatens in hate hates
        return found


def whole_of(text: Read) -> Part:
    """All of a text that has pieces, as the examples for attacks are learnt."""
    return Part(" ".join(text.pieces), text.pieces)


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


def _sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(logits, -40, 40)))
    return found
