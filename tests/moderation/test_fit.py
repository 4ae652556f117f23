"""Logits become probabilities, also where a head is far too sure."""

import numpy as np
import pytest

from moderation.heads.fit import platt


@pytest.mark.parametrize("sure", [1.0, 30.0, 1000.0])
def test_probabilities_are_as_often_right_as_they_say(sure: float) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=4000) * 2 - 1
    labels = (rng.random(4000) < 1 / (1 + np.exp(-logits))).astype(float)
    scale, shift = platt(logits * sure, labels)
    assert scale * sure == pytest.approx(1, abs=0.15)
    assert shift == pytest.approx(0, abs=0.15)


def test_kinds_that_are_apart_have_finite_probabilities() -> None:
    logits = np.concatenate([np.full(20, 40.0), np.linspace(-90, -30, 2000)])
    labels = np.concatenate([np.ones(20), np.zeros(2000)])
    scale, shift = platt(logits, labels)
    likely = 1 / (1 + np.exp(-(logits * scale + shift)))
    assert np.isfinite(likely).all()
    assert likely[:20].min() > 0.9
    assert likely[20:].max() < 0.2
