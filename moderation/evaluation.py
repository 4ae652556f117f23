"""How good scores are, against labels: ranking, decisions at a threshold, and calibration.

Labels are true for what should be found, and scores higher for what looks more like it. All functions
raise ValueError where a figure isn't defined, as for labels of one kind only.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moderation.categories import CATEGORIES, UNSAFE_CATEGORIES, parent

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Case:
    """A text with what is known of it. `categories` is None where only safe or unsafe was judged."""

    text: str
    is_unsafe: bool
    categories: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a threshold makes of the scores; a share whose denominator is zero is 0."""

    threshold: float
    precision: float
    recall: float
    false_positive_rate: float
    num_flagged: int


@dataclass(frozen=True, slots=True)
class Bin:
    """Scores of one interval: their mean, and the share of true labels among them."""

    mean_score: float
    share_true: float
    count: int


def read_cases(lines: Iterable[str]) -> list[Case]:
    """JSON lines, each with "text" and with "unsafe" (a boolean) or "categories" (a list), or both.

    Without "unsafe", a text is unsafe that has any category of harmful content. Raises ValueError with
    the line's number.
    """
    cases = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            cases.append(_case(json.loads(line)))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return cases


def read_cases_file(path: Path) -> list[Case]:
    """See `read_cases`; of a CSV (its name ends so) the rows, "categories" with spaces between. Raises
    OSError as well."""
    with path.open(encoding="utf-8", newline="") as lines:
        if path.suffix.lower() != ".csv":
            return read_cases(lines)
        return [_case_of_row(row, number) for number, row in enumerate(csv.DictReader(lines), 2)]


def read_benign_file(path: Path) -> list[str]:
    """Harmless texts: JSON lines with "text", or one text a line. Raises OSError, ValueError."""
    texts = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        is_json = line.lstrip().startswith("{")
        try:
            texts.append(str(json.loads(line)["text"]) if is_json else line)
        except (ValueError, KeyError) as error:
            raise ValueError(f"line {number}: {error}") from None
    return texts


def _case_of_row(row: dict[str, str | None], number: int) -> Case:
    found: dict[str, object] = {"text": row.get("text")}
    unsafe = (row.get("unsafe") or "").strip().lower()
    if unsafe:
        found["unsafe"] = {"true": True, "1": True, "false": False, "0": False}.get(unsafe, unsafe)
    if row.get("categories") is not None:
        found["categories"] = (row["categories"] or "").split()
    try:
        return _case(found)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def _case(found: object) -> Case:
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        raise ValueError('an object with a string "text" is wanted')
    unsafe, names = found.get("unsafe"), found.get("categories")
    if unsafe is None and names is None:
        raise ValueError('neither "unsafe" nor "categories" is given')
    if unsafe is not None and not isinstance(unsafe, bool):
        raise ValueError('"unsafe" is true or false')
    if names is None:
        return Case(found["text"], bool(unsafe), None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('"categories" is a list of names')
    if unknown := sorted(set(names) - set(CATEGORIES)):
        raise ValueError(f"there is no category {unknown[0]!r}")
    categories = frozenset(names) | {over for name in names if (over := parent(name))}
    if unsafe is None:
        unsafe = not categories.isdisjoint(UNSAFE_CATEGORIES)
    return Case(found["text"], unsafe, categories)


# --- ranking --------------------------------------------------------------------------------------


def auprc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Average precision: the mean, over the true ones, of the precision down to each.

    Equal scores are taken together, so the order of the texts changes nothing. Random scores have the
    share of the true ones.
    """
    truth, values = _checked(labels, scores)
    num_true, num_found, _ = _counts_down(truth, values)
    if not num_true:
        raise ValueError("no label is true")
    flagged = np.concatenate([[0], num_found[0] + num_found[1]])
    hits = np.concatenate([[0], num_found[0]])
    return float(np.sum(np.diff(hits) * (hits[1:] / flagged[1:])) / num_true)


def roc_auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """The chance that a true one scores higher than a false one; a tie counts half."""
    truth, values = _checked(labels, scores)
    num_true, num_found, num_false = _counts_down(truth, values)
    if not num_true or not num_false:
        raise ValueError("labels of both kinds are wanted")
    hits = np.concatenate([[0], num_found[0]]) / num_true
    alarms = np.concatenate([[0], num_found[1]]) / num_false
    return float(np.sum(np.diff(alarms) * (hits[1:] + hits[:-1]) / 2))


def _counts_down(truth: Bools, values: Floats) -> tuple[int, NDArray[np.int64], int]:
    """True ones; (2, distinct scores): how many true and false ones score at least that; false ones."""
    order = np.argsort(-values, kind="stable")
    true_so_far = np.cumsum(truth[order])
    false_so_far = np.cumsum(~truth[order])
    ends = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    counts = np.stack([true_so_far[ends], false_so_far[ends]]).astype(np.int64)
    return int(true_so_far[-1]), counts, int(false_so_far[-1])


# --- decisions ------------------------------------------------------------------------------------


def decisions(labels: ArrayLike, scores: ArrayLike, threshold: float) -> Decisions:
    """Flagged is what scores at least `threshold`."""
    truth, values = _checked(labels, scores)
    flagged = values >= threshold
    hits = int(np.sum(flagged & truth))
    return Decisions(
        threshold=threshold,
        precision=_share(hits, int(flagged.sum())),
        recall=_share(hits, int(truth.sum())),
        false_positive_rate=_share(int(flagged.sum()) - hits, int((~truth).sum())),
        num_flagged=int(flagged.sum()),
    )


def flagged_share(scores: ArrayLike, threshold: float) -> float:
    """Of texts that are all of one kind: the false-positive rate where all are safe."""
    values = np.asarray(scores, float)
    return float(np.mean(values >= threshold)) if values.size else 0.0


def threshold_for(safe_scores: ArrayLike, max_flagged_share: float) -> float:
    """The lowest threshold that flags at most this share of the safe scores, at the last of them.

    Raises ValueError without scores.
    """
    values = np.sort(np.asarray(safe_scores, float))[::-1]
    if not values.size:
        raise ValueError("no scores")
    allowed = int(np.floor(max_flagged_share * values.size + 1e-9))
    if allowed >= values.size:
        return 0.0
    return float(np.nextafter(values[allowed], np.inf))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# --- calibration ----------------------------------------------------------------------------------


def reliability(labels: ArrayLike, scores: ArrayLike, num_bins: int = 10) -> list[Bin]:
    """The reliability curve over intervals of equal width; empty ones are left out.

    Scores have to be probabilities. Raises ValueError otherwise.
    """
    truth, values = _checked(labels, scores)
    if values.min() < 0 or values.max() > 1:
        raise ValueError("a score isn't a probability")
    places = np.minimum((values * num_bins).astype(int), num_bins - 1)
    found = []
    for place in np.unique(places):
        inside = places == place
        mean, share = float(values[inside].mean()), float(truth[inside].mean())
        found.append(Bin(mean, share, int(inside.sum())))
    return found


def expected_calibration_error(labels: ArrayLike, scores: ArrayLike, num_bins: int = 10) -> float:
    """The mean distance of the curve from the diagonal, by texts. Source: Guo et al. (2017)."""
    bins = reliability(labels, scores, num_bins)
    total = sum(one.count for one in bins)
    return sum(one.count * abs(one.mean_score - one.share_true) for one in bins) / total


def brier(labels: ArrayLike, scores: ArrayLike) -> float:
    """The mean squared error of the probabilities. Source: Brier (1950)."""
    truth, values = _checked(labels, scores)
    return float(np.mean((values - truth) ** 2))


def _checked(labels: ArrayLike, scores: ArrayLike) -> tuple[Bools, Floats]:
    truth, values = np.asarray(labels, bool), np.asarray(scores, float)
    if truth.ndim != 1 or truth.shape != values.shape:
        raise ValueError("labels and scores are two rows of the same length")
    if not truth.size:
        raise ValueError("there are no texts")
    if not np.isfinite(values).all():
        raise ValueError("a score isn't a number")
    return truth, values


def any_of(scores: Sequence[dict[str, float]], categories: Sequence[str]) -> list[float]:
    """The highest probability among these categories, for each text."""
    return [max(one[name] for name in categories) for one in scores]
