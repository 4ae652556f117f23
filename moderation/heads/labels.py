"""What holds of the examples for windows, and how much each counts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moderation.categories import HEAD_CATEGORIES, UNSAFE_CATEGORIES
from moderation.heads import examples as written
from moderation.heads.examples import Example
from moderation.heads.heads import ATTACK_OUTPUTS, OUTPUTS
from moderation.heads.weights import Floats

NATURAL_IMPORTANCE = 4.0
"""There are few natural texts beside all the copies that frames and blanks make."""


def labels_of(examples: Sequence[Example]) -> tuple[Floats, Floats]:
    """Which categories hold, and which are judged: (examples, categories) of 0 and 1."""
    labels = [[name in one.categories for name in HEAD_CATEGORIES] for one in examples]
    judged = [[name not in one.unjudged for name in HEAD_CATEGORIES] for one in examples]
    return np.array(labels, float), np.array(judged, float)


def outputs_of(examples: Sequence[Example]) -> tuple[Floats, Floats, Floats]:
    """As `labels_of`, of OUTPUTS; and how much each counts. An attack that was planted in a document is
    no example of one that is written to an assistant, and none against it either."""
    labels, known = labels_of(examples)
    direct = HEAD_CATEGORIES.index("prompt_injection")
    is_attack = labels[:, direct] > 0
    is_planted = is_attack & np.array([written.is_planted(one.group) for one in examples])
    known_of_planted = np.where(is_attack & ~is_planted, 0.0, known[:, direct])
    labels[is_planted, direct] = known[is_planted, direct] = 0
    labels = np.column_stack([labels, is_planted])
    importance = np.ones_like(labels)
    natural = np.array([written.is_natural(one.group) for one in examples])
    attacks = [OUTPUTS.index(name) for name in ATTACK_OUTPUTS]
    harm = [OUTPUTS.index(name) for name in UNSAFE_CATEGORIES]
    of_harm = _are_of_harm_apart(examples)
    for column in attacks:
        importance[natural, column] = NATURAL_IMPORTANCE
    for column in harm:
        importance[of_harm, column] = NATURAL_IMPORTANCE
    return labels, np.column_stack([known, known_of_planted]), importance


def _are_of_harm_apart(examples: Sequence[Example]) -> NDArray[np.bool_]:
    """Which are harmful, or sound so, of writers apart."""
    return np.array(
        [
            written.is_sounding(one.group)
            or (written.is_apart(one.group) and not one.categories.isdisjoint(UNSAFE_CATEGORIES))
            for one in examples
        ]
    )
