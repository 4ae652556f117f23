"""What is held out together, and heads that have not seen it."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.heads import examples as written
from moderation.heads.fit import fit
from moderation.heads.weights import Floats, Inputs, Weights

NUM_FOLDS = 5
InputsBy = Callable[[Path], Inputs]


def folds_of(groups: Sequence[str]) -> NDArray[np.int64]:
    """(groups,): all that a writer apart wrote is of one fold."""
    return np.array([_fold(group) for group in groups], np.int64)


def _fold(group: str) -> int:
    if written.is_apart(group):
        group = group.partition(" [")[0]
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:4]) % NUM_FOLDS


def weights_of_folds(
    folds: NDArray[np.int64],
    adapters: Sequence[Path],
    inputs_by: InputsBy,
    labels: Floats,
    judged: Floats,
    importance: Floats,
) -> list[Weights]:
    """Heads, on vectors of an adapter, neither of which has seen the fold."""
    found = []
    for fold in range(NUM_FOLDS):
        seen: NDArray[np.int64] = np.flatnonzero(folds != fold)
        inputs = inputs_by(adapters[fold])
        found.append(fit(inputs.of(seen), labels[seen], judged[seen], importance[seen]))
    return found


def logits_of_folds(
    weights: Sequence[Weights],
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
