"""From what the heads for attacks say of a text's parts to how likely it is an attack."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moderation.heads.weights import Floats

OF_LENGTH = 0.5
"""By how much a text's logit for a jailbreak falls for each time that it has e times as many windows:
each is one more that can be mistaken. By 1 a text of many would be flagged no more often than one of
few, if windows were mistaken independently; but then more attacks in short documents are missed."""
_L2 = 1e-3  # of weights of inputs with a deviation of 1; tenfold finds as much


@dataclass(frozen=True, slots=True)
class Found:
    """Of texts, what the heads for attacks say: the highest logits of their windows, (texts,
    ATTACK_OUTPUTS); those of the text as a whole, (texts, INJECTION_CATEGORIES), which are those of the
    window where there is one; the highest of their pieces, (texts, PIECE_OUTPUTS), -inf where there are
    none; and how many windows, (texts,)."""

    windows: Floats
    wholes: Floats
    pieces: Floats
    num_windows: Floats

    def of(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> "Found":
        """Of some of the texts."""
        return Found(
            self.windows[which], self.wholes[which], self.pieces[which], self.num_windows[which]
        )

    @staticmethod
    def joined(some: "Sequence[Found]") -> "Found":
        return Found(
            np.concatenate([one.windows for one in some]),
            np.concatenate([one.wholes for one in some]),
            np.concatenate([one.pieces for one in some]),
            np.concatenate([one.num_windows for one in some]),
        )

    def inputs(self) -> Floats:
        """(texts, 7), of the combination: what each head has found, and the length."""
        logits = np.column_stack([self.windows, self.pieces[:, 1], self.wholes])
        return np.column_stack([np.logaddexp(0, logits), np.log(self.num_windows)])

    def jailbreak_logits(self) -> Floats:
        lowered: Floats = self.windows[:, 1] - OF_LENGTH * np.log(self.num_windows)
        return lowered

    def foreign_logits(self) -> Floats:
        return self.pieces[:, 0]


@dataclass(frozen=True, slots=True)
class Attacks:
    """An attack rarely convinces one head alone, so the logit of `prompt_injection` is a sum: of how
    much each head that knows attacks has found in the window or the piece that it finds worst, or in all
    of the text (the softplus of its logit, which is 0 for what it doesn't mind), and less for each time
    that a text has e times as many windows. A task that the text doesn't call for counts from
    `foreign_from` on, and so much that a clear one is an attack by itself. A jailbreak is as likely as
    its own head says, but not likelier than any attack."""

    of_direct: float
    of_jailbreak: float
    of_planted: float
    of_planted_piece: float
    of_direct_whole: float
    of_jailbreak_whole: float
    of_length: float
    bias: float
    jailbreak_scale: float = 1.0
    jailbreak_shift: float = 0.0
    of_foreign: float = 0.0
    foreign_from: float = 0.0

    def combined(self, found: Found) -> Floats:
        """(texts,) logits."""
        weights = (self.of_direct, self.of_jailbreak, self.of_planted, self.of_planted_piece)
        wholes = (self.of_direct_whole, self.of_jailbreak_whole)
        # Not a product of matrices, which rounds a row by how many there are.
        summands = found.inputs() * np.array([*weights, *wholes, self.of_length])
        foreign = np.logaddexp(0, found.foreign_logits() - self.foreign_from)
        logits: Floats = summands.sum(axis=1) + self.of_foreign * foreign + self.bias
        return logits

    def steeper(self, scale: float, logit: float) -> "Attacks":
        """With all logits so many times as far from that one: what is above it stays so."""
        shift = (1 - scale) * logit
        return Attacks(
            of_direct=scale * self.of_direct,
            of_jailbreak=scale * self.of_jailbreak,
            of_planted=scale * self.of_planted,
            of_planted_piece=scale * self.of_planted_piece,
            of_direct_whole=scale * self.of_direct_whole,
            of_jailbreak_whole=scale * self.of_jailbreak_whole,
            of_length=scale * self.of_length,
            bias=scale * self.bias + shift,
            jailbreak_scale=scale * self.jailbreak_scale,
            jailbreak_shift=scale * self.jailbreak_shift + shift,
            of_foreign=scale * self.of_foreign,
            foreign_from=self.foreign_from,
        )

    def probabilities(self, found: Found) -> tuple[Floats, Floats]:
        """Of `prompt_injection` and of `jailbreak`, (texts,) each."""
        attack = _sigmoid(self.combined(found))
        jailbreak = _sigmoid(self.jailbreak_scale * found.jailbreak_logits() + self.jailbreak_shift)
        return attack, np.minimum(attack, jailbreak)


def fit_combination(inputs: Floats, labels: Floats, of_length: float) -> Attacks:
    """Logistic regression on `Found.inputs` with that weight of the length, in which no head takes back
    what others have found: one that would is left out, those that would most first. labels: (texts,) of
    0 and 1."""
    of_heads, lengths = inputs[:, :-1], of_length * inputs[:, -1]
    used = list(range(of_heads.shape[1]))
    while True:
        weights, bias = _logistic(of_heads[:, used], labels, lengths)
        if not used or weights.min() >= 0:
            break
        used.pop(int(weights.argmin()))
    found = np.zeros(of_heads.shape[1])
    found[used] = weights
    return Attacks(*[*found.tolist(), of_length, bias])


def _logistic(inputs: Floats, labels: Floats, known: Floats) -> tuple[Floats, float]:
    """Weights and bias, by Newton's method, beside what is known of the logits."""
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    rows = np.column_stack([(inputs - mean) / deviation, np.ones(len(inputs))])
    decay = np.diag([*[_L2] * inputs.shape[1], 0.0])
    found = np.zeros(rows.shape[1])
    for _ in range(100):
        predicted = _sigmoid(rows @ found + known)
        gradient = rows.T @ (predicted - labels) / len(rows) + decay @ found
        curvature = (rows * (predicted * (1 - predicted))[:, None]).T @ rows / len(rows) + decay
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(found)), gradient)
        found = found - step
        if float(np.abs(step).max()) < 1e-9:
            break
    weights: Floats = found[:-1] / deviation
    return weights, float(found[-1] - weights @ mean)


def _sigmoid(logits: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.clip(logits, -40, 40)))
    return found
