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
from moderation.heads.parts import Said, Vectors, said_of
from moderation.heads.weights import Floats, Inputs, Weights
from moderation.windows import Read

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
_ATTACKS = slice(-len(ATTACK_OUTPUTS), None)
_NOTHING = dict.fromkeys(HEAD_CATEGORIES, 0.0)


class Heads:
    """The committed weights, or those of another file. Raises OSError or ValueError for a bad one."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        with np.load(path, allow_pickle=False) as found:
            self.digest = str(found["digest"])
            """Of the examples that they were trained on."""
            self.adapter = str(found["adapter"])
            """The revision of the adapter whose vectors they judge."""
            self._of_windows = _weights(found)
            self._of_pieces = _weights(found, "piece_")
            self._attacks = Attacks(*found["attacks"].tolist())
            names = tuple(found["categories"].tolist())
        shapes = *_shapes(self._of_windows), *_shapes(self._of_pieces)
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
        logits = self._of_windows.logits_by_row(Inputs(given, n_grams(texts)))
        no_pieces = np.full((len(texts), len(PIECE_OUTPUTS)), -np.inf)
        return self._scores_of(Said(logits, logits, no_pieces, np.ones(len(texts))))

    def judge(self, texts: Sequence[Read], vectors: Vectors) -> list[Scores]:
        """A probability for each category, for each text: that of its worst part, and of attacks what
        all heads for them say together (`Attacks`). `vectors` has all pieces that are not blank."""
        return self._scores_of(said_of(texts, vectors, self._of_windows, self._of_pieces))

    def _scores_of(self, said: Said) -> list[Scores]:
        is_said = said.num_windows > 0
        found = iter(self._scores_of_some(said, is_said))
        return [next(found) if one else _NOTHING for one in is_said]

    def _scores_of_some(self, said: Said, which: NDArray[np.bool_]) -> list[Scores]:
        of_attacks = attacks_said(said).of(which)
        attack, jailbreak = self._attacks.probabilities(of_attacks)
        probabilities = _sigmoid(said.windows[which, : len(HEAD_CATEGORIES)])
        own = [HEAD_CATEGORIES.index(name) for name in ("prompt_injection", "jailbreak")]
        probabilities[:, own] = np.stack([attack, jailbreak], axis=1)
        return [
            _with_parents(dict(zip(HEAD_CATEGORIES, row, strict=True)))
            for row in probabilities.tolist()
        ]


def attacks_said(said: Said) -> Found:
    """What the heads for attacks, which are the last ones for windows, have found."""
    of_windows, of_wholes = said.windows[:, _ATTACKS], said.wholes[:, _ATTACKS]
    return Found(
        of_windows, of_wholes[:, : len(INJECTION_CATEGORIES)], said.pieces, said.num_windows
    )


def _with_parents(scores: dict[str, float]) -> Scores:
    """Whoever threatens in hate hates."""
    for name in HEAD_CATEGORIES:
        if (over := parent(name)) and scores[over] < scores[name]:
            scores[over] = scores[name]
    return scores


def _weights(found: Mapping[str, NDArray[np.generic]], prefix: str = "") -> Weights:
    of_vector, of_words, bias = (
        found[f"{prefix}{name}"].astype(np.float32) for name in ("of_vector", "of_words", "bias")
    )
    return Weights(of_vector, of_words, bias)


def _shapes(weights: Weights) -> tuple[tuple[int, ...], ...]:
    return weights.of_vector.shape, weights.of_words.shape, weights.bias.shape


@cache
def shipped_thresholds() -> Mapping[str, float]:
    """From which probability on a category counts as found; how they were chosen stands in the file."""
    found = tomllib.loads(THRESHOLDS.read_text(encoding="utf-8"))["thresholds"]
    return {name: float(found[name]) for name in HEAD_CATEGORIES}


def _sigmoid(logits: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.clip(logits, -40, 40)))
    return found
