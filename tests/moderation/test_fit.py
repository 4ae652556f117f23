"""Logits become probabilities, also where a head is far too sure."""

import numpy as np
import pytest

from moderation.heads.features import n_grams
from moderation.heads.fit import fit, platt
from moderation.heads.weights import Inputs


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


def test_a_text_that_counts_more_is_learnt_rather_and_decay_keeps_weights_small() -> None:
    """Of two like texts with opposite labels, the one that counts more is believed."""
    inputs = Inputs(np.full((2, 3), 0.5, np.float32), n_grams(["the same", "the same"]))
    labels, judged = np.array([[1.0], [0.0]]), np.ones((2, 1))
    for counts, sign in ((9.0, 1), (1 / 9, -1)):
        weights = fit(inputs, labels, judged, np.array([[counts], [1.0]]))
        assert (np.sign(weights.logits(inputs)) == sign).all()
    rng = np.random.default_rng(2)
    apart = Inputs(rng.normal(size=(40, 3)).astype(np.float32), n_grams(["one"] * 40))
    truth = (apart.vectors[:, :1] > 0).astype(float)
    free, decayed = (fit(apart, truth, np.ones((40, 1)), 1.0, l2, 1e-5) for l2 in (1e-5, 1e-1))
    assert np.abs(decayed.of_vector).max() < np.abs(free.of_vector).max() / 3
