"""What the heads for attacks say together."""

import numpy as np
import pytest

from moderation.heads.attacks import Attacks, Found, fit_combination
from moderation.heads.weights import Floats

ALIKE = Attacks(*(1, 1, 1, 1, 1, 1, -0.5, -4), jailbreak_shift=-1, of_foreign=2, foreign_from=3)
NOTHING = -9.0


def _found(windows: Floats, pieces: Floats | None = None, length: float = 1) -> Found:
    """As a whole, nothing is found in these texts."""
    count = len(windows)
    none = np.full((count, 2), -np.inf)
    lengths = np.full(count, length)
    return Found(windows, np.full((count, 2), NOTHING), none if pieces is None else pieces, lengths)


def _likely(windows: list[float], pieces: list[float] | None = None, length: float = 1) -> float:
    of_pieces = None if pieces is None else np.array([pieces])
    (attack,), _ = ALIKE.probabilities(_found(np.array([windows]), of_pieces, length))
    return float(attack)


def test_heads_that_each_doubt_convince_together_and_one_at_ease_takes_nothing_back() -> None:
    alone = _likely([2.0, NOTHING, NOTHING], [NOTHING, NOTHING])
    together = _likely([2.0, 2.0, 2.0], [NOTHING, 2.0])
    assert alone < 0.25 < 0.9 < together
    assert _likely([2.0, NOTHING, NOTHING]) == pytest.approx(_likely([2.0, -99, -99]), abs=1e-3)
    assert _likely([2.0, NOTHING, NOTHING], length=20) < alone


def test_a_task_is_an_attack_by_itself_where_it_is_foreign_enough() -> None:
    assert _likely([NOTHING] * 3, [8.0, NOTHING]) > 0.99
    assert _likely([NOTHING] * 3, [2.0, NOTHING]) < 0.05
    assert _likely([NOTHING] * 3, [NOTHING] * 2) < 0.02
    assert _likely([NOTHING] * 3) == pytest.approx(_likely([NOTHING] * 3, [-99.0, -99.0]), abs=1e-3)
    together = _likely([2.0, NOTHING, NOTHING], [4.0, NOTHING])
    assert together > max(_likely([2.0, NOTHING, NOTHING]), _likely([NOTHING] * 3, [4.0, NOTHING]))


def test_steeper_it_has_other_probabilities_and_the_same_order_and_decisions() -> None:
    rng = np.random.default_rng(4)
    found = _found(3 * rng.normal(size=(99, 3)), 3 * rng.normal(size=(99, 2)))
    steeper = ALIKE.steeper(2, 1)
    at = 1 / (1 + np.exp(-1))
    both = zip(ALIKE.probabilities(found), steeper.probabilities(found), strict=True)
    for before, after in both:
        assert np.array_equal(np.argsort(before), np.argsort(after))
        assert np.array_equal(before >= at, after >= at)
        assert 0 < (before >= at).sum() < len(before)
    assert steeper.combined(found) == pytest.approx(2 * ALIKE.combined(found) - 1)


def test_a_jailbreak_is_no_likelier_than_an_attack() -> None:
    for windows in ([-9.0, 9.0, -9.0], [-9.0, 2.0, -9.0], [9.0, -2.0, 9.0]):
        attack, jailbreak = ALIKE.probabilities(_found(np.array([windows])))
        own = 1 / (1 + np.exp(1 - windows[1]))
        assert jailbreak[0] == pytest.approx(min(own, attack[0]))


def test_the_combination_is_learnt_from_what_the_heads_find() -> None:
    """Of two heads, one tells attacks and the other one chance."""
    rng = np.random.default_rng(3)
    labels = (rng.random(3000) < 0.3).astype(float)
    windows = np.column_stack([rng.normal(size=3000) + 3 * labels, rng.normal(size=(3000, 2))])
    found = _found(windows)
    learnt = fit_combination(found.inputs(), labels, -0.5)
    assert learnt.of_direct > 1
    assert learnt.of_length == -0.5
    assert abs(learnt.of_jailbreak) < 0.3
    assert learnt.of_planted_piece == pytest.approx(0, abs=1e-6)
    likely, _ = learnt.probabilities(found)
    assert likely.mean() == pytest.approx(labels.mean(), abs=0.02)


def test_what_one_head_has_found_another_does_not_take_back() -> None:
    """Of two heads that say nearly the same, the worse one would count against."""
    rng = np.random.default_rng(5)
    labels = (rng.random(3000) < 0.3).astype(float)
    better = rng.normal(size=3000) + 3 * labels
    worse = better + np.abs(rng.normal(size=3000)) * (1 - labels)
    windows = np.column_stack([better, worse, rng.normal(size=3000)])
    learnt = fit_combination(_found(windows).inputs(), labels, -0.5)
    assert learnt.of_direct > 1
    assert learnt.of_jailbreak == 0
    assert min(learnt.of_planted, learnt.of_planted_piece, learnt.of_direct_whole) >= 0
