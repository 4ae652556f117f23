"""From the examples to weights, thresholds and a report: `python -m moderation.heads train`."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moderation.categories import (
    HEAD_CATEGORIES,
    INJECTION_CATEGORIES,
    UNSAFE_CATEGORIES,
    Scores,
    parent,
)
from moderation.evaluation import threshold_for
from moderation.heads import examples as written
from moderation.heads.examples import Example
from moderation.heads.features import n_grams
from moderation.heads.fit import Floats, Inputs, Weights, fit, platt
from moderation.heads.heads import THRESHOLDS, WEIGHTS, Heads, tail_input
from moderation.heads.vectors import vectors_of
from moderation.normalising import normalised
from moderation.windows import read

CACHE = Path("var/moderation/vectors.npz")
NUM_FOLDS = 5
# With 5 % of the folds' harmless texts, 8 % of those in held_out/ that were never looked at were
# flagged: the examples are one writer's. So 3 %, to keep to 5 % of what others write.
MAX_SAFE_FLAGGED = 0.03
MAX_SAFE_TAKEN_FOR_INJECTION = 0.02
MAX_SAFE_FLAGGED_BY_KIND = 0.001
MAX_SAFE_TAILS_FLAGGED = 0.01


@dataclass(frozen=True, slots=True)
class Trained:
    """`held_out[i]` are the probabilities of example i by heads that have not seen its group, and
    `held_out_tails[i]` that of the tail of `tails[i]`."""

    examples: Sequence[Example]
    held_out: Sequence[Scores]
    tails: Sequence[Example]
    held_out_tails: Sequence[float]
    thresholds: dict[str, float]


def train() -> Trained:
    """Write the weights and the thresholds. The folds calibrate; the weights shipped are of them all."""
    examples = written.training_examples()
    texts = [one.text for one in examples]
    inputs = Inputs(vectors_of(texts, CACHE), n_grams(texts))
    labels, judged = labels_of(examples)
    logits = _logits_of_folds(_folds(examples), inputs, labels, judged)
    scales = np.ones(len(HEAD_CATEGORIES))
    shifts = np.zeros(len(HEAD_CATEGORIES))
    for column in range(len(HEAD_CATEGORIES)):
        known = judged[:, column] > 0
        scales[column], shifts[column] = platt(logits[known, column], labels[known, column])
    weights = fit(inputs, labels, judged)
    probabilities = 1 / (1 + np.exp(-(logits * scales + shifts)))
    held_out = [dict(zip(HEAD_CATEGORIES, row.tolist(), strict=True)) for row in probabilities]
    safe = [scores for one, scores in zip(examples, held_out, strict=True) if not one.categories]
    thresholds = _thresholds(safe, UNSAFE_CATEGORIES, MAX_SAFE_FLAGGED)
    thresholds |= _thresholds(safe, INJECTION_CATEGORIES, MAX_SAFE_TAKEN_FOR_INJECTION)
    _write_thresholds(thresholds)
    tails = written.tail_examples()
    of_tails, held_out_tails = _tails(tails, thresholds["prompt_injection"])
    _write(weights.scaled(scales, shifts), of_tails)
    return Trained(examples, held_out, tails, held_out_tails, thresholds)


def _tails(tails: Sequence[Example], threshold: float) -> tuple[Weights, list[float]]:
    """The head for tails, and what heads that have not seen their groups say of them. Scaled by Platt,
    and moved to where the threshold of windows flags `MAX_SAFE_TAILS_FLAGGED` of the harmless ones."""
    texts = [read(one.text) for one in tails]
    needed = list(dict.fromkeys(one for text in texts for one in (*text.before, text.tail)))
    vectors = dict(zip(needed, vectors_of(needed, CACHE), strict=True))
    rows = np.stack([tail_input(text, vectors) for text in texts])
    inputs = Inputs(rows, n_grams([text.tail for text in texts]))
    labels = np.array([[float(bool(one.categories))] for one in tails])
    judged = np.ones_like(labels)
    logits = _logits_of_folds(_folds(tails), inputs, labels, judged)
    scale, _ = platt(logits[:, 0], labels[:, 0])
    cut = threshold_for(logits[labels == 0], MAX_SAFE_TAILS_FLAGGED)
    shift = float(np.log(threshold / (1 - threshold))) - scale * cut
    weights = fit(inputs, labels, judged).scaled(np.array([scale]), np.array([shift]))
    return weights, (1 / (1 + np.exp(-(logits[:, 0] * scale + shift)))).tolist()


def scores_of(texts: Sequence[str], heads: Heads) -> list[Scores]:
    """As a text is scored when it's served: by its windows and its tail."""
    texts_read = [read(normalised(text).text) for text in texts]
    parts = list(dict.fromkeys(part for text in texts_read for part in text))
    return heads.judge(texts_read, dict(zip(parts, vectors_of(parts, CACHE), strict=True)))


def labels_of(examples: Sequence[Example]) -> tuple[Floats, Floats]:
    """Which categories hold, and which are judged: (examples, categories) of 0 and 1."""
    labels = [[name in one.categories for name in HEAD_CATEGORIES] for one in examples]
    judged = [[name not in one.unjudged for name in HEAD_CATEGORIES] for one in examples]
    return np.array(labels, float), np.array(judged, float)


def _logits_of_folds(
    folds: NDArray[np.int64], inputs: Inputs, labels: Floats, judged: Floats
) -> Floats:
    logits = np.zeros_like(labels)
    for fold in range(NUM_FOLDS):
        seen: NDArray[np.int64] = np.flatnonzero(folds != fold)
        unseen: NDArray[np.int64] = np.flatnonzero(folds == fold)
        weights = fit(inputs.of(seen), labels[seen], judged[seen])
        logits[unseen] = weights.logits(inputs.of(unseen))
    return logits


def _folds(examples: Sequence[Example]) -> NDArray[np.int64]:
    return np.array([_fold(one.group) for one in examples])


def _fold(group: str) -> int:
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:4]) % NUM_FOLDS


def _thresholds(
    safe: Sequence[Scores], names: Sequence[str], max_flagged: float
) -> dict[str, float]:
    """The lowest ones with which all these categories together flag no more than that share: one and
    the same for all that stand for themselves. A kind of another category, such as hate/threatening,
    is rare and has a lower one, by which it flags hardly any safe text of its own."""
    columns = {name: np.array([scores[name] for scores in safe]) for name in names}
    kinds = {
        name: threshold_for(columns[name], MAX_SAFE_FLAGGED_BY_KIND)
        for name in names
        if parent(name)
    }
    by_kinds = np.zeros(len(safe), bool)
    for name, threshold in kinds.items():
        by_kinds |= columns[name] >= threshold
    highest = np.max([columns[name] for name in names if name not in kinds], axis=0)
    allowed = max_flagged - float(by_kinds.mean())
    common = threshold_for(highest[~by_kinds], allowed * len(safe) / int((~by_kinds).sum()))
    found = {name: kinds.get(name, common) for name in names}
    return {name: min(0.999, round(value + 0.0005, 3)) for name, value in found.items()}


def _write(weights: Weights, of_tails: Weights) -> None:
    """Calibrated: the scales and shifts are in the weights. Half precision is a tenth of a percent."""
    np.savez_compressed(
        WEIGHTS,
        categories=np.array(HEAD_CATEGORIES),
        digest=np.array(written.digest()),
        of_vector=weights.of_vector,
        of_words=weights.of_words.astype(np.float16),
        bias=weights.bias,
        tail_of_vector=of_tails.of_vector,
        tail_of_words=of_tails.of_words.astype(np.float16),
        tail_bias=of_tails.bias,
    )


_HEAD = """\
# From which probability on a category counts as found. Written by `python -m moderation.heads train`;
# policies may choose others.
#
# Chosen on the project's own harmless examples, most of which sound harmful, each scored by heads that
# have not seen it or its neighbours. The categories of harmful content together flag at most
# {unsafe:.0%} of them, so that 5% of what others write is not passed; prompt_injection and jailbreak
# together at most {injection:.0%}. The categories of such a group have one threshold; their kinds
# (hate/threatening) have their own, by each of which {kind:.1%} are flagged at most.

[thresholds]
"""


def _write_thresholds(thresholds: dict[str, float]) -> None:
    lines = [f'"{name}" = {thresholds[name]:.3f}\n' for name in HEAD_CATEGORIES]
    head = _HEAD.format(
        unsafe=MAX_SAFE_FLAGGED,
        injection=MAX_SAFE_TAKEN_FOR_INJECTION,
        kind=MAX_SAFE_FLAGGED_BY_KIND,
    )
    THRESHOLDS.write_text(head + "".join(lines), encoding="utf-8")
