"""Sessions in Postgres with Redis in front of it, which may be away."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.cached_db import SessionStore as CachedStore
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.core.cache import caches
from redis.exceptions import RedisError


class SessionStore(CachedStore):
    """Django's own tolerates a cache that fails when it saves, and not when it loads."""

    @classmethod
    def load_together(cls, stores: "Sequence[SessionStore]") -> None:
        """From the cache, in one go; what it does not hold each store loads when it is read."""
        keys = {store.cache_key: store for store in stores if store.session_key}
        if not keys:
            return
        cache = caches[settings.SESSION_CACHE_ALIAS]
        try:
            found = cache.get_many(keys)
        except RedisError:
            return
        for key, data in found.items():
            keys[key]._session_cache = data  # type: ignore[attr-defined]

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
