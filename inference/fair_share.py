"""Who has had how much of the engine: virtual token counters.

Everybody's counter grows by the tokens that are computed for them, divided by their weight; whoever
has the lowest goes next. Who comes back after a pause is lifted to the lowest of those who are there,
so that nobody saves up. Source: Sheng et al. 2024, "Fairness in Serving Large Language Models".
"""

from collections import Counter

OUTPUT_COST = 2.0
"""What a decoded token costs in prompt tokens; the paper's choice, after the prices of public APIs."""

_LEAST_KEPT = 64


class FairShare:
    """Counters by user, in prompt tokens per weight. Only differences between them mean anything."""

    def __init__(self) -> None:
        self._counters: dict[str, float] = {}
        self._num_present: Counter[str] = Counter()
        self._most_kept = _LEAST_KEPT  # counters, until some of them are forgotten

    def arrive(self, user: str) -> None:
        """A request of a user has come."""
        if not self._num_present[user]:
            self._counters[user] = max(self._counters.get(user, 0.0), self._lowest())
        self._num_present[user] += 1

    def leave(self, user: str) -> None:
        """A request of a user has ended, whichever way."""
        self._num_present[user] -= 1
        if self._num_present[user]:
            return
        del self._num_present[user]
        if not self._num_present:
            self._counters.clear()
            self._most_kept = _LEAST_KEPT
        elif len(self._counters) > self._most_kept:
            self._forget()

    def _forget(self) -> None:
        """What lies below everybody present would be lifted at its return anyway. As many as are kept
        may come before the next look, so that each costs O(1)."""
        lowest = self._lowest()
        self._counters = {
            user: counter
            for user, counter in self._counters.items()
            if counter > lowest or user in self._num_present
        }
        self._most_kept = max(_LEAST_KEPT, 2 * len(self._counters))

    def charge(self, user: str, cost: float, weight: float) -> None:
        self._counters[user] += cost / weight

    def of(self, user: str) -> float:
        return self._counters[user]

    def _lowest(self) -> float:
        return min((self._counters[user] for user in self._num_present), default=0.0)
