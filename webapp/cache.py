"""Redis as Django's cache: how values are written into it, and how long a process waits for it."""

import json
import logging
from time import monotonic
from typing import Any

import redis
from django.conf import settings
from django.core.cache.backends import redis as stock
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import TimeoutError as RedisSilent
from redis.retry import Retry

logger = logging.getLogger(__name__)

PATIENCE_S = 1.0  # a busy process alone takes tenths of a second
AWAY_S = 5.0  # for which nobody asks it again, once it did not answer
_ONCE = Retry(NoBackoff(), 0)
_away_until_s = 0.0


class JsonSerializer:
    """JSON instead of Django's pickle: whoever can write to Redis must not be able to run code.

    A value that JSON does not know raises TypeError. Integers stay bare, so that Redis can count.
    """

    def dumps(self, value: Any) -> int | bytes:
        if type(value) is int:
            return value
        return json.dumps(value, separators=(",", ":")).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


class _Client(redis.Redis):
    """Raises at once for some seconds after it was not answered, so that a Redis that hangs holds no
    request up for more than one wait. What is to be forgotten it is told all the same."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        global _away_until_s
        if monotonic() < _away_until_s and args[0] != "DEL":
            raise RedisAway("Redis did not answer a moment ago")
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except (RedisAway, RedisSilent, OSError) as error:
            if monotonic() >= _away_until_s:
                logger.warning("Redis is away, sessions are read from Postgres: %r", error)
            _away_until_s = monotonic() + AWAY_S
            raise


class _CacheClient(stock.RedisCacheClient):
    def __init__(self, servers: Any, **options: Any) -> None:
        options["retry"] = _ONCE
        options["socket_timeout"] = options["socket_connect_timeout"] = PATIENCE_S
        super().__init__(servers, **options)
        self._client = _Client


def ping(timeout_s: float) -> None:
    """Ask Redis itself, however lately it did not answer. Raises RedisError."""
    waits = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s, "retry": _ONCE}
    with redis.Redis.from_url(settings.REDIS_URL, **waits) as client:
        client.ping()


class RedisCache(stock.RedisCache):
    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _CacheClient
