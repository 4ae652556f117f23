"""What is held out together, and heads that have not seen it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.heads import examples as written
from moderation.heads.fit import fit
from moderation.heads.weights import Floats, Inputs, Weights

NUM_FOLDS = len(written.WRITERS_APART)
InputsBy = Callable[[Path], Inputs]


def folds_of(groups: Sequence[str]) -> NDArray[np.int64]:
    """(groups,): all that a writer apart wrote is of one fold, which is no other such writer's."""
    return np.array([_fold(group) for group in groups], np.int64)


def _fold(group: str) -> int:
    if written.is_apart(group):
        return written.WRITERS_APART.index(written.writer_of(group))
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:4]) % NUM_FOLDS


def weights_of_folds(
    folds: NDArray[np.int64],
    adapters: Sequence[Path],
    inputs_by: InputsBy,
    labels: Floats,
    judged: Floats,
    importance: Floats,
    wanted: Sequence[int] = range(NUM_FOLDS),
) -> dict[int, Weights]:
    """By the folds that are wanted, heads on vectors of its adapter that have not seen it."""
    found = {}
    for fold in wanted:
        seen: NDArray[np.int64] = np.flatnonzero(folds != fold)
        inputs = inputs_by(adapters[fold])
        found[fold] = fit(inputs.of(seen), labels[seen], judged[seen], importance[seen])
    return found


def logits_of_folds(
    weights: Mapping[int, Weights],
    folds: NDArray[np.int64],
    adapters: Sequence[Path],
    inputs_by: InputsBy,
) -> Floats:
    """Of all, by the heads that have not seen their fold."""
    logits = np.zeros((len(folds), weights[0].bias.size))
    for fold in range(NUM_FOLDS):
        unseen: NDArray[np.int64] = np.flatnonzero(folds == fold)
        logits[unseen] = weights[fold].logits(inputs_by(adapters[fold]).of(unseen))
    return logits
