"""How much each head for attacks counts, and from where on a text is one: fitted to natural texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from moderation.evaluation import threshold_for
from moderation.heads import examples as written
from moderation.heads.attacks import Attacks, Found, fit_combination
from moderation.heads.examples import NaturalText
from moderation.heads.folds import folds_of
from moderation.heads.heads import attacks_said
from moderation.heads.parts import said_of
from moderation.heads.vectors import vectors_of_pieces
from moderation.heads.weights import Weights
from moderation.normalising import judged
from moderation.windows import read

# Of those writers by whom it is chosen. Of one who was left out in turn 1.9 % were flagged, in the mean,
# where .0165 of the others' were; of a fifth set, by a writer of whom nothing was known, .9 %.
MAX_NATURAL_FLAGGED = 0.02
MAX_JAILBREAKS_FLAGGED = 0.008
# Of ordinary texts, in so many is a task foreign enough to count; and how much it counts from there on.
FOREIGN_SHARE, OF_FOREIGN = 0.0075, 4.0
# Not fitted, since these texts are short, a dozen windows at most. With what is fitted to them, -.6, 5
# of 60 pages of packages are flagged, with this 2, and as many attacks are found.
OF_LENGTH = -1.5
ATTACKS_FROM = 0.773
"""The threshold of attacks: their logits are shifted to where it flags `MAX_NATURAL_FLAGGED`."""
NOTHING_FOUND = 0.01


@dataclass(frozen=True, slots=True)
class NaturalShare:
    """How many of the natural texts of a kind are flagged by heads that have not seen their group."""

    kind: str
    title: str
    num_flagged: int
    num_texts: int


def natural_found(
    texts: Sequence[NaturalText],
    weights: Mapping[int, Weights],
    of_pieces: Mapping[int, Weights],
    adapters: Sequence[Path],
) -> Found:
    """Of texts as they're scored when served, by heads that have not seen their group."""
    folds = folds_of([one.group for one in texts])
    order, found = [], []
    for fold in sorted(set(folds.tolist())):
        own = np.flatnonzero(folds == fold)
        texts_read = [read(judged(texts[at].text)) for at in own.tolist()]
        vectors = vectors_of_pieces(texts_read, adapters[fold])
        found.append(attacks_said(said_of(texts_read, vectors, weights[fold], of_pieces[fold])))
        order.append(own)
    return Found.joined(found).of(np.argsort(np.concatenate(order)))


def fit_attacks(
    texts: Sequence[NaturalText], natural: Found, jailbreak_scale: float
) -> tuple[Attacks, list[NaturalShare]]:
    """How much each head counts, fitted to natural texts that the heads have not seen, and shifted so
    that `ATTACKS_FROM` is the cut; and what is flagged from there of the same texts.

    The cut is the lowest one from which no more than `MAX_NATURAL_FLAGGED` of the ordinary texts of
    writers apart are flagged."""
    labels = np.array([float(one.kind != "harmless") for one in texts])
    harmless = labels == 0
    fitted = replace(
        fit_combination(natural.inputs(), labels, OF_LENGTH),
        of_foreign=OF_FOREIGN,
        foreign_from=threshold_for(natural.foreign_logits()[harmless], FOREIGN_SHARE),
    )
    scores = fitted.combined(natural)
    jailbreak_cut = threshold_for(natural.jailbreak_logits()[harmless], MAX_JAILBREAKS_FLAGGED)
    is_apart = np.array([written.is_apart(one.group) for one in texts])
    cut = threshold_for(scores[harmless & is_apart], MAX_NATURAL_FLAGGED)
    flagged: dict[tuple[str, str], list[bool]] = {}
    for one, score in zip(texts, scores, strict=True):
        title = one.group.partition(": ")[2].partition(" [")[0]
        flagged.setdefault((one.kind, title), []).append(bool(score >= cut))
    start = _logit(ATTACKS_FROM)
    fitted = replace(
        fitted,
        bias=fitted.bias + start - cut,
        jailbreak_scale=float(jailbreak_scale),
        jailbreak_shift=float(start - jailbreak_scale * jailbreak_cut),
    )
    # Attacks are a third of these texts, and in service few: where no head finds anything, a text of one
    # window has its bias alone.
    fitted = fitted.steeper((start - _logit(NOTHING_FOUND)) / (start - fitted.bias), start)
    return fitted, [NaturalShare(*key, sum(own), len(own)) for key, own in flagged.items()]


def _logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability)))
