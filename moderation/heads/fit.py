"""Logistic regression on vectors and n-grams, for all categories at once, in numpy.

Convex, from zero, without chance: the same examples give the same weights, but for the last bits of a
machine's arithmetic.
"""

from collections.abc import Callable

import numpy as np

from moderation.heads.features import NUM_BUCKETS, NGrams
from moderation.heads.weights import Floats, Inputs, Weights

# By the folds: AUPRC of unsafe .89 and of injection .81 with 5e-5 and 2e-4, .91 and .86 with these.
L2_OF_VECTOR = 3e-5
L2_OF_WORDS = 1e-5
_NUM_STEPS = 100  # afterwards weights grow, and little else
_MEMORY = 10
_BUCKETS_AT_ONCE = 256  # so that their rows stay in the processor's cache
_TOLERANCE = 2e-6


def fit(
    inputs: Inputs,
    labels: Floats,
    judged: Floats,
    importance: Floats | float = 1.0,
    l2_of_vector: float = L2_OF_VECTOR,
    l2_of_words: float = L2_OF_WORDS,
) -> Weights:
    """labels, judged: (texts, categories) of 0 and 1. What is not judged doesn't count.

    The rarer label of a category weighs more, by the root of how much rarer it is; and each text by its
    `importance`, (texts, categories).
    """
    counts = weights_of_texts(labels, judged) * importance
    counts /= counts.sum(0)
    turned = _Turned(inputs.words)
    num_dimensions, num_outputs = inputs.vectors.shape[1], labels.shape[1]

    def unpacked(flat: Floats) -> Weights:
        table = flat.reshape(-1, num_outputs).astype(np.float32)
        return Weights(table[:num_dimensions], table[num_dimensions:-1], table[-1])

    decay = np.concatenate(
        [
            np.full(num_dimensions * num_outputs, l2_of_vector),
            np.full(NUM_BUCKETS * num_outputs, l2_of_words),
            np.zeros(num_outputs),
        ]
    )

    def loss(flat: Floats) -> tuple[float, Floats]:
        logits = unpacked(flat).logits(inputs)
        error = counts * (_sigmoid(logits) - labels)
        value = float((counts * (np.logaddexp(0, logits) - labels * logits)).sum())
        of_vector = inputs.vectors.T @ error.astype(np.float32)
        gradient = np.concatenate([of_vector, turned.times(error), error.sum(0)[None]])
        return value + float(decay @ (flat * flat)) / 2, gradient.ravel() + decay * flat

    size = (num_dimensions + NUM_BUCKETS + 1) * num_outputs
    return unpacked(_minimum(loss, np.zeros(size)))


def platt(logits: Floats, labels: Floats) -> tuple[float, float]:
    """Scale and shift of logits that make probabilities of them. Source: Platt (1999), with his targets,
    which keep it finite where the two kinds are apart, by Newton's method with steps that are halved
    until they lead down (Lin, Lin and Weng 2007, "A note on Platt's probabilistic outputs")."""
    num_true, num_false = labels.sum(), (1 - labels).sum()
    targets = np.where(labels > 0, (num_true + 1) / (num_true + 2), 1 / (num_false + 2))
    inputs = np.stack([logits, np.ones_like(logits)], axis=1)

    def loss(found: Floats) -> float:
        scaled = inputs @ found
        return float((np.logaddexp(0, scaled) - targets * scaled).sum())

    found = np.array([1.0, 0.0])
    for _ in range(100):
        predicted = _sigmoid(inputs @ found)
        gradient = inputs.T @ (predicted - targets)
        curvature = (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs
        step = np.linalg.solve(curvature + 1e-9 * np.eye(2), gradient)
        before = loss(found)
        while loss(found - step) > before and np.abs(step).max() > 1e-12:
            step = step / 2
        found = found - step
        if float(np.abs(step).max()) < 1e-9:
            break
    return float(found[0]), float(found[1])


class _Turned:
    """N-grams by bucket: what each text passes back to the weights."""

    def __init__(self, words: NGrams) -> None:
        texts = np.repeat(np.arange(len(words)), np.diff(words.starts))
        order = np.argsort(words.buckets, kind="stable")
        self._texts = texts[order]
        self._values = words.values[order][:, None]
        self._buckets, self._starts = np.unique(words.buckets[order], return_index=True)

    def times(self, errors: Floats) -> Floats:
        """errors: (texts, categories). Returns (NUM_BUCKETS, categories)."""
        of_texts = errors.astype(np.float32)
        found = np.zeros((NUM_BUCKETS, errors.shape[1]))
        ends = np.append(self._starts, len(self._texts))
        for first in range(0, len(self._starts), _BUCKETS_AT_ONCE):
            starts = ends[first : first + _BUCKETS_AT_ONCE + 1]
            places = slice(starts[0], starts[-1])
            rows = of_texts[self._texts[places]]
            rows *= self._values[places]
            buckets = self._buckets[first : first + _BUCKETS_AT_ONCE]
            found[buckets] = np.add.reduceat(rows, starts[:-1] - starts[0], axis=0)
        return found


def weights_of_texts(labels: Floats, judged: Floats) -> Floats:
    share = (labels * judged).sum(0) / judged.sum(0)
    counts = judged * np.where(labels > 0, share**-0.5, (1 - share) ** -0.5)
    normalised: Floats = counts / counts.sum(0)
    return normalised


def _sigmoid(logits: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.clip(logits, -40, 40)))
    return found


def _minimum(loss: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    """By L-BFGS. Source: Nocedal and Wright, Numerical Optimization, algorithm 7.4."""
    at = start
    value, gradient = loss(at)
    past: list[tuple[Floats, Floats, float]] = []
    for _ in range(_NUM_STEPS):
        direction = -_times_inverse_hessian(gradient, past)
        slope = float(direction @ gradient)
        length = 1.0 if past else min(1.0, 1 / float(np.abs(gradient).sum()))
        while True:  # until it goes down enough
            step = length * direction
            new_value, new_gradient = loss(at + step)
            if new_value <= value + 1e-4 * length * slope or length < 1e-10:
                break
            length /= 2
        change = new_gradient - gradient
        if (curvature := float(step @ change)) > 0:
            past = [*past, (step, change, 1 / curvature)][-_MEMORY:]
        at, value, gradient = at + step, new_value, new_gradient
        if float(np.abs(gradient).max()) < _TOLERANCE:
            break
    return at


def _times_inverse_hessian(gradient: Floats, past: list[tuple[Floats, Floats, float]]) -> Floats:
    direction = gradient.copy()
    shares = []
    for step, change, inverse in reversed(past):
        share = inverse * float(step @ direction)
        direction -= share * change
        shares.append(share)
    if past:
        step, change, _ = past[-1]
        direction *= float(step @ change) / float(change @ change)
    for (step, change, inverse), share in zip(past, reversed(shares), strict=True):
        direction += (share - inverse * float(change @ direction)) * step
    return direction
