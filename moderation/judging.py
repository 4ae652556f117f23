"""Labelled texts, judged by the configured classifiers, and what that says of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from inference import Caller, Engine, EngineConfig, EngineError
from moderation import evaluation
from moderation.categories import (
    CATEGORIES,
    INJECTION_CATEGORIES,
    RULE_CATEGORIES,
    UNSAFE_CATEGORIES,
    Scores,
)
from moderation.classifiers.making import made
from moderation.classifiers.screener import Screener
from moderation.classifiers.spec import ClassifierSpec
from moderation.evaluation import Case
from moderation.heads import shipped_thresholds

NUM_TIMED = 200
_AT_ONCE = 64
_CALLER = Caller("evaluation", 1.0, "background")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedTexts:
    """`scores[i]` are those of `cases[i]`, and `times_ms` of single texts among them."""

    cases: tuple[Case, ...]
    scores: tuple[Scores, ...]
    times_ms: tuple[float, ...]


async def judge(
    cases: Sequence[Case],
    benign: Sequence[str],
    config: EngineConfig,
    specs: Sequence[ClassifierSpec],
) -> JudgedTexts:
    """By an engine of this process. Raises EngineError where a classifier cannot be asked."""
    every = [*cases, *(Case(text, False, frozenset()) for text in benign)]
    engine = Engine(config)
    screener = made(specs, engine)
    try:
        scores: list[Scores] = []
        for at in range(0, len(every), _AT_ONCE):
            scores += await _scores_of(screener, [one.text for one in every[at : at + _AT_ONCE]])
        times_ms = []
        for case in every[:NUM_TIMED]:
            began_s = perf_counter()
            await _scores_of(screener, [case.text])
            times_ms.append((perf_counter() - began_s) * 1e3)
        return JudgedTexts(tuple(every), tuple(scores), tuple(times_ms))
    finally:
        await screener.close()
        await engine.close()


async def _scores_of(screener: Screener, texts: Sequence[str]) -> Sequence[Scores]:
    screening = await screener.screen(texts, _CALLER)
    for report in screening.failed:
        raise report.error or EngineError(report.classifier)
    return screening.scores


# --- figures --------------------------------------------------------------------------------------


def thresholds() -> dict[str, float]:
    return dict.fromkeys(RULE_CATEGORIES, 0.5) | dict(shipped_thresholds())


def figures(judged: JudgedTexts) -> Json:
    """Of harmful content and of injections together, and of each category that texts are labelled
    with."""
    known = [(one, s) for one, s in zip(judged.cases, judged.scores, strict=True)]
    labelled = [(one, s) for one, s in known if one.categories is not None]
    groups: dict[str, Json] = {}
    unsafe = [(one.is_unsafe, s) for one, s in known]
    groups["unsafe"] = _group(unsafe, UNSAFE_CATEGORIES)
    attacks = [
        (not one.categories.isdisjoint(INJECTION_CATEGORIES), s)
        for one, s in labelled
        if one.categories is not None
    ]
    groups["injection"] = _group(attacks, INJECTION_CATEGORIES)
    for name in CATEGORIES:
        pairs = [(name in one.categories, s) for one, s in labelled if one.categories is not None]
        groups[name] = _group(pairs, (name,))
    harmless = [s for one, s in known if not one.is_unsafe and not one.categories]
    return {
        "texts": len(known),
        "harmless": len(harmless),
        "harmless_flagged": _share(_flags(harmless, CATEGORIES)),
        "groups": {name: found for name, found in groups.items() if found},
        "reliability": _reliability(unsafe, attacks),
        "latency_ms": {
            "p50": float(np.percentile(judged.times_ms, 50)) if judged.times_ms else 0.0,
            "p95": float(np.percentile(judged.times_ms, 95)) if judged.times_ms else 0.0,
        },
    }


def _group(pairs: Sequence[tuple[bool, Scores]], names: Sequence[str]) -> Json:
    """Empty where the labels are all of one kind: there is nothing to tell apart."""
    labels = np.array([label for label, _ in pairs], bool)
    if not labels.any() or labels.all():
        return {}
    found = [scores for _, scores in pairs]
    highest = evaluation.any_of([dict(one) for one in found], names)
    flagged = _flags(found, names)
    return {
        "texts": int(labels.sum()),
        "auprc": evaluation.auprc(labels, highest),
        "roc_auc": evaluation.roc_auc(labels, highest),
        "precision": _share(labels[flagged]),
        "recall": _share(flagged[labels]),
        "false_positive_rate": _share(flagged[~labels]),
        "calibration_error": evaluation.expected_calibration_error(labels, highest),
    }


def _flags(scores: Sequence[Scores], names: Sequence[str]) -> Any:
    at = thresholds()
    return np.array([any(one[name] >= at[name] for name in names) for one in scores], bool)


def _share(flags: Any) -> float:
    return float(flags.mean()) if len(flags) else 0.0


def _reliability(
    unsafe: Sequence[tuple[bool, Scores]], attacks: Sequence[tuple[bool, Scores]]
) -> list[Json]:
    """Of the two groups together: how often what scored so is really so."""
    labels, scores = [], []
    for pairs, names in ((unsafe, UNSAFE_CATEGORIES), (attacks, INJECTION_CATEGORIES)):
        labels += [label for label, _ in pairs]
        scores += evaluation.any_of([dict(one) for _, one in pairs], names)
    bins = evaluation.reliability(labels, scores)
    return [
        {"mean_score": one.mean_score, "share_true": one.share_true, "texts": one.count}
        for one in bins
    ]


def report(found: Json) -> list[str]:
    """The figures as lines for people."""
    lines = [f"{found['texts']:,} texts, {found['harmless']:,} of them harmless", ""]
    titles = ("", "texts", "AUPRC", "ROC", "precision", "recall", "flagged of others", "ECE")
    rows = [list(titles)]
    for name, one in found["groups"].items():
        shares = [f"{one[key]:.3f}" for key in ("auprc", "roc_auc", "precision", "recall")]
        rest = [f"{one['false_positive_rate']:.1%}", f"{one['calibration_error']:.3f}"]
        rows.append([name, f"{one['texts']:,}", *shares, *rest])
    widths = [max(len(row[at]) for row in rows) for at in range(len(titles))]
    lines += [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    if found["harmless"]:
        lines += [
            "",
            f"Of the harmless ones {found['harmless_flagged']:.1%} are flagged for anything.",
        ]
    lines += ["", "Reliability: mean score, share that is so, texts"]
    lines += [
        f"{one['mean_score']:.3f}  {one['share_true']:.3f}  {one['texts']:,}"
        for one in found["reliability"]
    ]
    times = found["latency_ms"]
    lines += ["", f"A text takes {times['p50']:.1f} ms (p50), {times['p95']:.1f} ms (p95)."]
    return lines
