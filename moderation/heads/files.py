"""The files that training writes: weights, and the thresholds of the categories."""

from collections.abc import Mapping

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
# From which probability on a category counts as found. Written by `python -m moderation.heads train`;
# policies may choose others.
#
# Chosen on the project's own harmless examples, most of which sound harmful, each scored by heads that
# have not seen it or its neighbours. The categories of harmful content together flag at most
# {unsafe:.1%} of them, so that 5% of what others write is not passed; prompt_injection and jailbreak
# together at most {injection:.2%} of the ordinary texts of a writer from whom the heads learnt nothing.
# The categories of such a group have one threshold; their kinds (hate/threatening) have their own, by
# each of which {kind:.1%} are flagged at most.

[thresholds]
"""


def kept() -> dict[str, NDArray[np.generic]]:
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
