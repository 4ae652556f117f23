"""The files that training writes: weights, and the thresholds of the categories."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.adapter_files import read_adapter
from moderation.categories import HEAD_CATEGORIES
from moderation.heads import examples as written
from moderation.heads.combining import MAX_NATURAL_FLAGGED
from moderation.heads.heads import THRESHOLDS, WEIGHTS
from moderation.heads.thresholds import MAX_SAFE_FLAGGED, MAX_SAFE_FLAGGED_BY_KIND
from moderation.heads.weights import Weights
from moderation.heads_adapter import HEADS_ADAPTER

_HEAD = """\
# From which probability on a category counts as found. Written by `python -m moderation.heads train`
# or `fit`; policies may choose others.
#
# `train` chooses on the project's own harmless examples, most of which sound harmful, each scored by
# heads that have not seen it or its neighbours. The categories of harmful content together flag at
# most {unsafe:.1%} of them, so that 5% of what others write is not passed; after `fit` the threshold
# that they have in common is HARM_FROM of thresholds.py. prompt_injection and jailbreak together flag
# at most {injection:.2%} of the ordinary texts of writers from whom the heads learnt nothing. Kinds of a
# category (hate/threatening) have their own, by each of which `train` flags {kind:.1%} at most.

[thresholds]
"""


def kept() -> dict[str, NDArray[Any]]:
    """The arrays of the last training."""
    with np.load(WEIGHTS, allow_pickle=False) as found:
        return dict(found)


def of_pieces(weights: Weights) -> dict[str, NDArray[np.generic]]:
    return {
        "piece_of_vector": weights.of_vector,
        "piece_of_words": weights.of_words.astype(np.float16),
        "piece_bias": weights.bias,
    }


def save(arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Calibrated: the scales and shifts are in the weights, and beside them for whoever fits some anew.
    Half precision is a tenth of a percent."""
    digest, revision = written.digest(), read_adapter(HEADS_ADAPTER.path).revision
    own = {"digest": np.array(digest), "adapter": np.array(revision)}
    np.savez_compressed(WEIGHTS, allow_pickle=False, **{**arrays, **own})


def write_thresholds(thresholds: dict[str, float]) -> None:
    lines = [f'"{name}" = {thresholds[name]:.3f}\n' for name in HEAD_CATEGORIES]
    head = _HEAD.format(
        unsafe=MAX_SAFE_FLAGGED,
        injection=MAX_NATURAL_FLAGGED,
        kind=MAX_SAFE_FLAGGED_BY_KIND,
    )
    THRESHOLDS.write_text(head + "".join(lines), encoding="utf-8")
