"""What a step that reads costs: a part that it costs anyway, and a part for each token.

Where a step that only decodes is replayed (CUDA graphs) and one that reads is launched kernel by kernel,
the first part is ten times a decode step, and the second a thousandth of it. Were all of it taken for
the tokens' price, few tokens would look dear, the next step would read fewer, and those look dearer.
"""

from dataclasses import dataclass
from math import sqrt

_KEPT = 0.95  # of what was known, with each further step
_MOST_DEARER = 2.0  # that a step counts for, of what was expected
_FAR_CHEAPER = 4.0  # than expected: so much was no step's price
_FIRST_SHARE = 0.25  # of a step is its tokens' price, until steps of other sizes tell
_LEAST_SPREAD = 0.1  # of the mean: steps more alike than that tell nothing of a slope
_LEAST_TRIED = 64  # tokens


@dataclass(slots=True)
class ReadingLine:
    """The line through steps' tokens and seconds by least squares, of which older ones count less and
    less. `token_s` is None before any step."""

    fixed_s: float = 0.0
    token_s: float | None = None
    _weight: float = 0.0
    _mean_tokens: float = 0.0
    _mean_s: float = 0.0
    _spread: float = 0.0  # summed squares of tokens about their mean
    _together: float = 0.0  # summed products of both about their means
    _spread_s2: float = 0.0  # summed squares of seconds about theirs

    @property
    def is_sure(self) -> bool:
        """Whether steps were unlike enough to tell the one part from the other."""
        return self._spread > self._weight * (_LEAST_SPREAD * self._mean_tokens) ** 2

    @property
    def untried_tokens(self) -> float:
        """A step of so many would tell more than those that there were."""
        half = self._mean_tokens / 2
        return half if half >= _LEAST_TRIED else 2 * self._mean_tokens

    def learn(self, num_tokens: float, took_s: float, beside_s: float = 0.0) -> None:
        """`took_s` is what a step took beyond `beside_s`, which it takes without these tokens.
        Source of the update: West 1979, "Updating mean and variance estimates".

        Any step may be disturbed, and none is quicker than it can be. In the first one a kernel may be
        compiled, and at any time the driver be asked for memory: of what took far longer than expected
        only a part counts, and where a step took far less, the ones before say nothing.
        """
        kept = _KEPT
        if self.token_s is not None:
            expected_s = self.fixed_s + self.token_s * num_tokens
            if _FAR_CHEAPER * (took_s + beside_s) < expected_s + beside_s:
                kept = 0.0
                self.token_s = None
            elif self.is_sure:
                took_s = min(took_s, _MOST_DEARER * (expected_s + beside_s) - beside_s)
        self._weight = kept * self._weight + 1.0
        ahead = num_tokens - self._mean_tokens
        self._mean_tokens += ahead / self._weight
        ahead_s = took_s - self._mean_s
        self._mean_s += ahead_s / self._weight
        self._spread = kept * self._spread + ahead * (num_tokens - self._mean_tokens)
        self._together = kept * self._together + ahead * (took_s - self._mean_s)
        self._spread_s2 = kept * self._spread_s2 + ahead_s * (took_s - self._mean_s)
        through_zero = self._mean_s / self._mean_tokens
        slope = self.token_s or _FIRST_SHARE * through_zero
        if self.is_sure:
            slope = self._together / self._spread
            # By a standard error less: small steps that vary tell little, and larger ones more.
            left_s2 = max(0.0, self._spread_s2 - slope * self._together)
            slope -= sqrt(left_s2 / max(1.0, self._weight - 2) / self._spread)
        # Never nothing: what disturbs steps of few tokens would make many look free.
        self.token_s = min(max(slope, 0.02 * through_zero), through_zero)
        self.fixed_s = self._mean_s - self.token_s * self._mean_tokens
