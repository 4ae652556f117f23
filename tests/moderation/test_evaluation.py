"""The figures, against values worked out by hand."""

import json
from random import Random

import pytest

from moderation import evaluation


def test_auprc_is_the_mean_precision_at_the_true_ones() -> None:
    # Down the ranking: true, false, true, false, true.
    found = evaluation.auprc([1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5])
    assert found == pytest.approx((1 / 1 + 2 / 3 + 3 / 5) / 3)


def test_auprc_takes_ties_together() -> None:
    assert evaluation.auprc([1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]) == pytest.approx(0.25)
    assert evaluation.auprc([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]) == pytest.approx(0.25)


def test_roc_auc_counts_pairs() -> None:
    # 5 of 6 pairs in the right order, and one tie.
    assert evaluation.roc_auc([1, 1, 0, 0, 0], [0.9, 0.4, 0.4, 0.3, 0.1]) == pytest.approx(5.5 / 6)


@pytest.mark.parametrize("seed", range(5))
def test_ranking_is_what_the_definitions_say(seed: int) -> None:
    random = Random(seed)
    labels = [random.random() < 0.3 for _ in range(60)] + [True, False]
    scores = [round(random.random() + 0.4 * label, 1) for label in labels]
    true = [s for s, label in zip(scores, labels, strict=True) if label]
    false = [s for s, label in zip(scores, labels, strict=True) if not label]
    pairs = sum((t > f) + (t == f) / 2 for t in true for f in false)
    assert evaluation.roc_auc(labels, scores) == pytest.approx(pairs / len(true) / len(false))

    def precision(at: float) -> float:
        hits = sum(t >= at for t in true)
        return hits / (hits + sum(f >= at for f in false))

    assert evaluation.auprc(labels, scores) == pytest.approx(sum(map(precision, true)) / len(true))


@pytest.mark.parametrize("measure", [evaluation.auprc, evaluation.roc_auc, evaluation.brier])
def test_the_order_of_texts_changes_nothing(measure: object) -> None:
    assert callable(measure)
    rows = [(1, 0.9), (0, 0.9), (1, 0.2), (0, 0.2), (0, 0.1), (1, 0.5)]
    expected = measure(*zip(*rows, strict=True))
    for seed in range(5):
        Random(seed).shuffle(rows)
        assert measure(*zip(*rows, strict=True)) == pytest.approx(expected)


def test_decisions_at_a_threshold() -> None:
    made = evaluation.decisions([1, 1, 1, 0, 0], [0.9, 0.6, 0.2, 0.6, 0.1], 0.6)
    assert (made.num_flagged, made.precision) == (3, pytest.approx(2 / 3))
    assert made.recall == pytest.approx(2 / 3)
    assert made.false_positive_rate == pytest.approx(1 / 2)
    nothing = evaluation.decisions([1, 0], [0.1, 0.1], 0.5)
    assert (nothing.precision, nothing.recall, nothing.false_positive_rate) == (0, 0, 0)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.1, 0.5, 1.0])
def test_a_threshold_keeps_to_its_share(share: float) -> None:
    scores = [round(Random(place).random(), 2) for place in range(100)]
    threshold = evaluation.threshold_for(scores, share)
    assert evaluation.flagged_share(scores, threshold) <= share
    below = [score for score in scores if score < threshold]
    if below:  # one step lower would flag too many
        assert evaluation.flagged_share(scores, max(below)) > share


def test_perfect_and_worst_calibration() -> None:
    assert evaluation.expected_calibration_error([0, 1, 0, 1], [0.5] * 4) == pytest.approx(0)
    assert evaluation.expected_calibration_error([0, 0], [1.0, 1.0]) == pytest.approx(1)
    curve = evaluation.reliability([0, 1, 1, 1], [0.05, 0.15, 0.95, 1.0])
    assert [(one.count, one.share_true) for one in curve] == [(1, 0), (1, 1), (2, 1)]
    assert evaluation.brier([1, 0], [0.8, 0.4]) == pytest.approx((0.04 + 0.16) / 2)


@pytest.mark.parametrize(
    ("labels", "scores"), [([], []), ([1], [0.1, 0.2]), ([1, 0], [0.1, float("nan")])]
)
def test_what_is_no_set_is_refused(labels: list[int], scores: list[float]) -> None:
    with pytest.raises(ValueError):
        evaluation.brier(labels, scores)


def test_one_kind_only_has_no_ranking() -> None:
    with pytest.raises(ValueError):
        evaluation.auprc([0, 0], [0.1, 0.2])
    with pytest.raises(ValueError):
        evaluation.roc_auc([1, 1], [0.1, 0.2])
    with pytest.raises(ValueError):
        evaluation.reliability([1], [1.5])


def test_cases_are_read() -> None:
    lines = [
        json.dumps({"text": "a", "unsafe": True}),
        "",
        json.dumps({"text": "b", "categories": ["hate/threatening"]}),
        json.dumps({"text": "c", "categories": ["prompt_injection"]}),
        json.dumps({"text": "d", "categories": [], "unsafe": False}),
    ]
    one, two, three, four = evaluation.read_cases(lines)
    assert (one.is_unsafe, one.categories) == (True, None)
    assert (two.is_unsafe, two.categories) == (True, {"hate", "hate/threatening"})
    assert not three.is_unsafe  # an attack on the assistant is no harmful content
    assert (four.is_unsafe, four.categories) == (False, frozenset())


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"unsafe": true}', '{"text": "a"}', '{"text": "a", "unsafe": 1}',
     '{"text": "a", "categories": ["rudeness"]}', '{"text": "a", "categories": "hate"}'],
)  # fmt: skip
def test_a_bad_line_is_named(line: str) -> None:
    good = json.dumps({"text": "a", "unsafe": True})
    with pytest.raises(ValueError, match="line 2"):
        evaluation.read_cases([good, line])
