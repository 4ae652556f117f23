"""Rows one behind the other in packs of one size, as a GPU wants them: no padding, and no new shapes.

A pack is a step of a training. Torch-free; arrays, since they come from other processes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from inference.builtin.packing import Row

Ids = NDArray[np.int32]

_FILLER = 256  # tokens of a row that fills up: no longer than most
TARGET_SHARE = 0.6
"""Places for targets, of a pack's tokens: where a text repeats itself half of it is a target."""


@dataclass(frozen=True, slots=True)
class Pack:
    """`ids` (tokens,) of all rows and of short ones that fill up; `positions` (tokens,) in them;
    `starts` (rows + 1,) of all of these, and the end. `places`, `targets` and `counts`
    (targets,): where the next token is learnt, which one, and how often it counts, 0 where none is."""

    ids: Ids
    positions: Ids
    starts: Ids
    places: Ids
    targets: Ids
    counts: NDArray[np.float32]
    num_tokens: int
    num_targets: int


def packs(rows: Iterable[Row], size: int) -> Iterator[Pack]:
    """Packs of `size` tokens; a row that does not fit begins the next one. Longer rows are left out."""
    taken: list[Row] = []
    num_tokens = num_targets = 0
    for row in rows:
        found = sum(map(bool, row.counts))
        if len(row.ids) > size or found > _places_of(size):
            continue
        if num_tokens + len(row.ids) > size or num_targets + found > _places_of(size):
            yield _packed(taken, size)
            taken, num_tokens, num_targets = [], 0, 0
        taken.append(row)
        num_tokens += len(row.ids)
        num_targets += found


def _places_of(size: int) -> int:
    return int(size * TARGET_SHARE)


def _packed(rows: list[Row], size: int) -> Pack:
    ends = list(accumulate(len(row.ids) for row in rows))
    begins = [0, *ends[:-1], *range(ends[-1], size, _FILLER)]
    starts = np.array([*begins, size], np.int32)
    ids = np.zeros(size, np.int32)
    ids[: ends[-1]] = np.concatenate([row.ids for row in rows])
    counted = np.zeros(size, np.int32)
    counted[: ends[-1]] = np.concatenate([row.counts for row in rows])
    positions = np.arange(size) - np.repeat(begins, np.diff(starts))
    counted[positions == 0] = 0  # nothing stands before it
    found = np.flatnonzero(counted)
    places, targets = (np.zeros(_places_of(size), np.int32) for _ in range(2))
    counts = np.zeros(_places_of(size), np.float32)
    places[: len(found)] = found - 1
    targets[: len(found)] = ids[found]
    counts[: len(found)] = counted[found]
    return Pack(
        ids, positions.astype(np.int32), starts, places, targets, counts,
        num_tokens=ends[-1], num_targets=int(counted.sum()),
    )  # fmt: skip
