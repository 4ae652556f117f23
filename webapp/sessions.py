"""Sessions in Postgres with Redis in front of it, which may be away."""

from typing import Any

from django.contrib.sessions.backends.cached_db import SessionStore as CachedStore
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from redis.exceptions import RedisError


class SessionStore(CachedStore):
    """Django's own tolerates a cache that fails when it saves, and not when it loads."""

    def load(self) -> dict[str, Any]:
        try:
            session: dict[str, Any] = super().load()
        except RedisError:
            session = DatabaseStore.load(self)
        return session

    async def aload(self) -> dict[str, Any]:
        try:
            session: dict[str, Any] = await super().aload()
        except RedisError:
            session = await DatabaseStore.aload(self)
        return session
