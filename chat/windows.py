"""How often something may happen: at most `limit` times within any `period_s`, exactly.

A sliding-window log: each window keeps the times of what it let through. In Redis one script looks at
all windows and writes to all or none, by Redis' own clock, so that any number of processes count as
one. While Redis is away each process counts for itself, from what it has let through itself.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from chat.gathering import Gathering

logger = logging.getLogger(__name__)

PATIENCE_S = 1.0  # with Redis: a busy event loop alone takes tenths of a second
AWAY_S = 5.0  # for which nobody asks it again, once it did not answer
MAX_CONNECTIONS = 8
_PREFIX = "vitrine:window:"
_MAX_LOCAL = 10_000  # windows that a process remembers

# KEYS are the windows; ARGV: a name for this call, how many times each who asks counts, how many ask,
# and of each window its limit and its period in microseconds. Returns how many of them may pass, and of
# each window how many times were left before, in how many microseconds it has room for one of the
# others, and in how many it is empty.
_ADMIT = """
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local cost, num = tonumber(ARGV[2]), tonumber(ARGV[3])
local num_pass, used, result = num, {}, {}
for i, key in ipairs(KEYS) do
  local limit, period = tonumber(ARGV[2 * i + 2]), tonumber(ARGV[2 * i + 3])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - period)
  used[i] = redis.call('ZCARD', key)
  num_pass = math.min(num_pass, math.max(0, math.floor((limit - used[i]) / cost)))
end
for i, key in ipairs(KEYS) do
  local limit, period = tonumber(ARGV[2 * i + 2]), tonumber(ARGV[2 * i + 3])
  for n = 1, num_pass * cost do redis.call('ZADD', key, now, ARGV[1] .. ':' .. n) end
  if num_pass > 0 then redis.call('PEXPIRE', key, math.ceil(period / 1000)) end
  local at, wait = used[i] + (num_pass + 1) * cost - limit - 1, 0
  if num_pass < num and at >= 0 then
    local leaving = redis.call('ZRANGE', key, at, at, 'WITHSCORES')
    wait = leaving[2] and leaving[2] + period - now or period
  end
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  result[i] = {limit - used[i], wait, last[2] and last[2] + period - now or 0}
end
return {num_pass, result}
"""


@dataclass(frozen=True, slots=True)
class Window:
    """`key` names who or what is counted."""

    key: str
    limit: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Count:
    """How a window stands: times left, seconds until one more would pass, and until it is empty."""

    window: Window
    remaining: int
    wait_s: float
    reset_s: float


@dataclass(frozen=True, slots=True)
class Admission:
    is_admitted: bool
    counts: tuple[Count, ...] = ()

    @property
    def tightest(self) -> Count | None:
        """The window that has the least left, by which a caller does well to go."""
        return min(self.counts, key=lambda count: (count.remaining, -count.wait_s), default=None)

    @property
    def wait_s(self) -> float:
        return max((count.wait_s for count in self.counts), default=0.0)


class LocalWindows:
    """The same within one process."""

    def __init__(self) -> None:
        self._logs: dict[str, deque[float]] = {}

    def admit(self, windows: Sequence[Window], cost: int = 1) -> Admission:
        """Count it in all windows where it may pass in each, otherwise in none."""
        now_s = monotonic()
        logs = [self._log(window, now_s) for window in windows]
        may_pass = all(
            len(log) + cost <= window.limit for window, log in zip(windows, logs, strict=True)
        )
        if may_pass:
            self.note(windows, cost)
        pairs = zip(windows, logs, strict=True)
        return Admission(may_pass, tuple(_count(*pair, now_s, cost, may_pass) for pair in pairs))

    def note(self, windows: Sequence[Window], cost: int = 1) -> None:
        """Count what has passed elsewhere."""
        now_s = monotonic()
        for window in windows:
            log = self._log(window, now_s)
            log.extend([now_s] * cost)

    def _log(self, window: Window, now_s: float) -> deque[float]:
        log = self._logs.pop(window.key) if window.key in self._logs else deque()
        while log and log[0] <= now_s - window.period_s:
            log.popleft()
        self._logs[window.key] = log  # the one looked at last is the last to be forgotten
        if len(self._logs) > _MAX_LOCAL:
            del self._logs[next(iter(self._logs))]
        return log


def _count(window: Window, log: deque[float], now_s: float, cost: int, has_passed: bool) -> Count:
    wait_s = 0.0
    if not has_passed and (num_over := len(log) + cost - window.limit) > 0:
        leaves = log[num_over - 1] + window.period_s if num_over <= len(log) else None
        wait_s = window.period_s if leaves is None else leaves - now_s
    reset_s = min(window.period_s, log[-1] + window.period_s - now_s) if log else 0.0
    return Count(window, max(0, window.limit - len(log)), wait_s, reset_s)


_Asked = tuple[tuple[Window, ...], int]
_local = LocalWindows()
_away_until_s = 0.0
_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, Redis]" = WeakKeyDictionary()


async def admit(windows: Sequence[Window], cost: int = 1) -> Admission:
    """Whether it may happen now; then it counts `cost` times. Never raises, never waits long."""
    if not windows:
        return Admission(True)
    if monotonic() < _away_until_s:
        return _local.admit(windows, cost)
    try:
        admission = await _asking.ask((tuple(windows), cost))
    except (RedisError, OSError, TimeoutError):
        return _local.admit(windows, cost)
    if admission.is_admitted:
        _local.note(windows, cost)
    return admission


async def _admit_in_redis(asked: Sequence[_Asked]) -> Sequence[Admission]:
    """In one go. Who waited while it did not answer waits no second
    time."""
    global _away_until_s
    if monotonic() < _away_until_s:
        raise ConnectionError("Redis is away")
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _told_by_redis(asked)
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("Redis is away, this process counts for itself: %r", error)
        _away_until_s = monotonic() + AWAY_S
        raise


async def _told_by_redis(asked: Sequence[_Asked]) -> list[Admission]:
    """Those who ask for the same, as programs with one key do, are one call."""
    alike: dict[_Asked, list[int]] = {}
    for at, one in enumerate(asked):
        alike.setdefault(one, []).append(at)
    script = _client().register_script(_ADMIT)
    calls = [(one, len(places)) for one, places in alike.items()]
    if len(calls) == 1:
        told: Sequence[Any] = [await _run(script, *calls[0])]
    else:
        async with _client().pipeline(transaction=False) as pipeline:
            for one, num in calls:
                await _run(script, one, num, client=pipeline)
            told = await pipeline.execute()
    found: dict[int, Admission] = {}
    for ((windows, cost), places), (num_pass, counts) in zip(alike.items(), told, strict=True):
        for nth, at in enumerate(places):
            found[at] = _admission(windows, cost, nth, int(num_pass), counts)
    return [found[at] for at in range(len(asked))]


async def _run(script: Any, asked: _Asked, num: int, client: Any = None) -> Any:
    windows, cost = asked
    keys = [_PREFIX + window.key for window in windows]
    limits = [n for window in windows for n in (window.limit, int(window.period_s * 1e6))]
    args: list[str | int] = [secrets.token_hex(8), cost, num, *limits]
    return await script(keys=keys, args=args, client=client)


def _admission(
    windows: Sequence[Window], cost: int, nth: int, num_pass: int, counts: Sequence[Any]
) -> Admission:
    """Of the `nth` of those who asked for the same."""
    may_pass = nth < num_pass
    taken = min(nth + 1, num_pass) * cost
    return Admission(
        may_pass,
        tuple(
            Count(
                window,
                max(0, int(left) - taken),
                0.0 if may_pass else max(0.0, int(wait) / 1e6),
                max(0.0, int(reset) / 1e6),
            )
            for window, (left, wait, reset) in zip(windows, counts, strict=True)
        ),
    )


_asking: Gathering[_Asked, Admission] = Gathering(_admit_in_redis)


def _client() -> Redis:
    """Of this event loop, which its connections belong to."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        pool = BlockingConnectionPool.from_url(
            settings.REDIS_URL,
            max_connections=MAX_CONNECTIONS,
            timeout=PATIENCE_S,
            socket_timeout=PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
        )
        _clients[loop] = Redis.from_pool(pool)
    return _clients[loop]


async def close() -> None:
    """Give back this event loop's connections."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()
