"""The servers that run one model: which is asked next, and which are left alone for a while.

The rule is the circuit breaker of Nygard's "Release It!": after some failures in a row a server rests,
longer each time; then one request tries it, and decides whether it is back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from time import monotonic

from inference.upstreams.spec import host_of

MAX_FAILURES = 3  # in a row
FIRST_REST_S = 1.0
MAX_REST_S = 60.0
_turns = count()


class NoneLeft(Exception):
    """All servers rest; the first is tried again after `retry_after_s`."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"all servers rest for {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s


@dataclass(slots=True, eq=False)
class Replica:
    """One server. `num_failures` are in a row; it rests after many of them, and is busy where it said
    so, until times on the monotonic clock."""

    url: str
    num_running: int = 0
    num_failures: int = 0
    rests_until_s: float = 0.0
    busy_until_s: float = 0.0
    last_turn: int = -1

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def is_on_trial(self) -> bool:
        """Back from a rest, and not proven yet: one request at a time."""
        return self.num_failures >= MAX_FAILURES

    @property
    def away_until_s(self) -> float:
        return max(self.rests_until_s, self.busy_until_s)

    def is_free(self, now_s: float) -> bool:
        return now_s >= self.away_until_s and not (self.is_on_trial and self.num_running)

    def succeeded(self) -> None:
        """It answers, which makes it no less busy: it may have told another request so since."""
        self.num_failures = 0
        self.rests_until_s = 0.0

    def failed(self) -> None:
        """It did not answer, or with an error of its own. Requests that failed together count once
        it rests no longer: they say the same."""
        if monotonic() < self.rests_until_s:
            return
        self.num_failures += 1
        if self.is_on_trial:
            rest_s = FIRST_REST_S * 2.0 ** min(self.num_failures - MAX_FAILURES, 10)
            self.rests_until_s = monotonic() + min(rest_s, MAX_REST_S)

    def is_busy_for(self, wait_s: float) -> None:
        """It asked to be left alone (HTTP 429), which is no failure."""
        self.busy_until_s = monotonic() + min(wait_s, MAX_REST_S)

    def forget(self) -> None:
        self.succeeded()
        self.busy_until_s = 0.0


class Replicas:
    """Chooses the server with the fewest requests running; of equals, the one whose turn is longest
    ago. One that failed last comes last: it is always the least busy, and would draw everybody."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self.all = [Replica(url) for url in urls]

    @property
    def rest_s(self) -> float:
        """How long all of them still rest; 0 while one does not."""
        return max(0.0, min(replica.away_until_s for replica in self.all) - monotonic())

    @property
    def are_resting(self) -> bool:
        return self.rest_s > 0

    @contextmanager
    def chosen(self) -> Iterator[Replica]:
        """A server for one request, counted as running within. Raises NoneLeft."""
        now_s = monotonic()
        free = [replica for replica in self.all if replica.is_free(now_s)]
        if not free:
            raise NoneLeft(max(self.rest_s, FIRST_REST_S))
        replica = min(free, key=lambda r: (r.num_failures, r.num_running, r.last_turn))
        replica.last_turn = next(_turns)
        replica.num_running += 1
        try:
            yield replica
        finally:
            replica.num_running -= 1

    def try_again(self) -> None:
        """Forget what went wrong: somebody has asked for it."""
        for replica in self.all:
            replica.forget()
