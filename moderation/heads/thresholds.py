"""From which probability on a category of harmful content counts as found."""

from collections.abc import Mapping, Sequence

import numpy as np

from moderation.categories import UNSAFE_CATEGORIES, Scores, parent
from moderation.evaluation import threshold_for

# With 5 % of the folds' harmless texts, 8 % of those in held_out/ that were never looked at were
# flagged: the examples are one writer's. So half of it, to keep to 5 % of what others write.
MAX_SAFE_FLAGGED = 0.025
MAX_SAFE_FLAGGED_BY_KIND = 0.001
HARM_FROM = 0.7
"""Of categories that stand for themselves, since heads were fitted to an adapter that has seen all
folds. Chosen by three sets of strangers (benchmarks/moderation/by_strangers): it flags 3.4 % of 350
texts that sound harmful, and 71 % of 350 that are; the heads before flagged 5.5 and 76 %."""


def thresholds_of(
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


def with_harm_from(thresholds: Mapping[str, float]) -> dict[str, float]:
    """With `HARM_FROM`, and those for kinds of other categories as they are."""
    own = {name: HARM_FROM for name in UNSAFE_CATEGORIES if not parent(name)}
    return {**thresholds, **own}
