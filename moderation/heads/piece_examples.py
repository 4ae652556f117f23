"""The sentences of documents that the heads for pieces learn from."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.heads import examples as written
from moderation.heads.examples import Document
from moderation.heads.features import n_grams
from moderation.heads.fit import fit
from moderation.heads.folds import NUM_FOLDS, folds_of, logits_of_folds
from moderation.heads.parts import piece_inputs
from moderation.heads.vectors import vectors_of_pieces
from moderation.heads.weights import Floats, Inputs, Weights
from moderation.windows import read

# There are few natural texts beside all the copies that frames and blanks make: of foreign tasks, and of
# planted orders; of documents with a question as well, or "Summarise this letter." before a letter would
# be taken for an order. By a development set, the indirect attacks that are found where 2 % of ordinary
# texts are flagged: .67 of 86 by one head for pieces with 8, .77 by two with 5, .82 by two with 20; and
# less with the weaker decay of windows.
NATURAL_IMPORTANCE_OF_PIECE = (4.0, 20.0)
QUESTION_IMPORTANCE_OF_PIECE = (1.0, 10.0)
L2_OF_PIECE_VECTOR, L2_OF_PIECE_WORDS = 1e-4, 3e-5


class PieceExamples:
    """The pieces that the heads for them learn from: orders, and all of harmless documents."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._texts = [read(document.text) for document in documents]
        self._places: list[int] = []
        self._words: list[str] = []
        labels, known, importance, owners = [], [], [], []
        groups: list[str] = []
        for owner, (document, text) in enumerate(zip(documents, self._texts, strict=True)):
            is_planted = written.is_planted(document.group)
            for place, piece in enumerate(text.pieces):
                is_order = document.is_order and document.is_added(piece)
                if is_order or not document.is_order:
                    self._words.append(piece)
                    self._places.append(place)
                    labels.append([is_order and not is_planted, is_order and is_planted])
                    known.append([not (is_order and is_planted), not is_order or is_planted])
                    importance.append(_importance_of_pieces(document))
                    owners.append(owner)
                    groups.append(document.group_of(piece))
        self._grams = n_grams(self._words)
        self._labels: Floats = np.array(labels, float)
        self._judged: Floats = np.array(known, float)
        self._importance: Floats = np.array(importance)
        self.owners: NDArray[np.int64] = np.array(owners)
        self._folds = folds_of(groups)

    def fit(self, adapter: Path) -> Weights:
        every: NDArray[np.int64] = np.arange(len(self._folds))
        return self._fit_some(every, self._inputs_by(adapter))

    def weights_of_folds(
        self, adapters: Sequence[Path], wanted: Sequence[int] = range(NUM_FOLDS)
    ) -> dict[int, Weights]:
        """By the folds that are wanted, heads on vectors of its adapter that have not seen it."""
        found = {}
        inputs_by = lru_cache(1)(self._inputs_by)  # often it is one adapter
        for fold in wanted:
            seen: NDArray[np.int64] = np.flatnonzero(self._folds != fold)
            found[fold] = self._fit_some(seen, inputs_by(adapters[fold]))
        return found

    def held_out_logits(self, weights: Mapping[int, Weights], adapters: Sequence[Path]) -> Floats:
        """Of all pieces, by heads that have not seen their groups."""
        return logits_of_folds(weights, self._folds, adapters, self._inputs_by)

    def _fit_some(self, rows: NDArray[np.int64], inputs: Inputs) -> Weights:
        return fit(
            inputs.of(rows),
            self._labels[rows],
            self._judged[rows],
            self._importance[rows],
            L2_OF_PIECE_VECTOR,
            L2_OF_PIECE_WORDS,
        )

    def _inputs_by(self, adapter: Path) -> Inputs:
        vectors = vectors_of_pieces(self._texts, adapter)
        rows = [piece_inputs(text, vectors) for text in self._texts]
        places = zip(self.owners, self._places, strict=True)
        return Inputs(np.stack([rows[owner][place] for owner, place in places]), self._grams)


def _importance_of_pieces(document: Document) -> tuple[float, float]:
    if written.is_natural(document.group):
        return NATURAL_IMPORTANCE_OF_PIECE
    if document.added and not document.is_order:
        return QUESTION_IMPORTANCE_OF_PIECE
    return 1.0, 1.0
