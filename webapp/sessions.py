"""Sessions in Postgres with Redis in front of it, which may be away.

A copy in Redis lives for some minutes only: one that could not be deleted, because Redis was away when
its session ended, opens nothing for long when Redis is back.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends.cached_db import SessionStore as CachedStore
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.utils import timezone
from redis.exceptions import RedisError

CACHED_S = 300


class SessionStore(CachedStore):
    """Django's own tolerates a cache that fails when it saves, and not when it loads or deletes."""

    _cache: Any
    _session: Any
    _session_cache: dict[str, Any]
    _get_session_from_db: Any

    @classmethod
    def load_together(cls, stores: "Sequence[SessionStore]") -> None:
        """From the cache in one go, and from the database in one more. Those that there are not each
        store finds out when it is read."""
        waiting = [store for store in stores if store.session_key]
        if not waiting:
            return
        with suppress(RedisError):
            found = caches[settings.SESSION_CACHE_ALIAS].get_many({s.cache_key for s in waiting})
            for store in waiting:
                if store.cache_key in found:
                    store._session_cache = found[store.cache_key]
        waiting = [store for store in waiting if not hasattr(store, "_session_cache")]
        keys = {store.session_key for store in waiting}
        living = Session.objects.filter(expire_date__gt=timezone.now())
        rows = living.in_bulk(keys, field_name="session_key") if keys else {}
        for store in waiting:
            if row := rows.get(store.session_key):
                store._session_cache = store._kept(row)

    @classmethod
    def delete_together(cls, keys: Collection[str]) -> None:
        """From the database first: it has the last word."""
        Session.objects.filter(session_key__in=keys).delete()
        cls.forget_copies(keys)

    @classmethod
    def forget_copies(cls, keys: Collection[str]) -> None:
        with suppress(RedisError):
            cached = [cls.cache_key_prefix + key for key in keys]
            caches[settings.SESSION_CACHE_ALIAS].delete_many(cached)

    def load(self) -> dict[str, Any]:
        with suppress(RedisError):
            data: dict[str, Any] | None = self._cache.get(self.cache_key)
            if data is not None:
                return data
        row = self._get_session_from_db()
        return self._kept(row) if row else {}

    def exists(self, session_key: str) -> bool:
        with suppress(RedisError):
            return bool(super().exists(session_key))
        return bool(DatabaseStore.exists(self, session_key))

    def save(self, must_create: bool = False) -> None:
        DatabaseStore.save(self, must_create)
        self._keep(self._session, self.get_expiry_age())

    def delete(self, session_key: str | None = None) -> None:
        with suppress(RedisError):  # behind the row
            super().delete(session_key)

    async def aload(self) -> dict[str, Any]:
        return await sync_to_async(self.load)()

    async def aexists(self, session_key: str) -> bool:
        return await sync_to_async(self.exists)(session_key)

    async def asave(self, must_create: bool = False) -> None:
        await sync_to_async(self.save)(must_create)

    async def adelete(self, session_key: str | None = None) -> None:
        await sync_to_async(self.delete)(session_key)

    def _kept(self, row: Any) -> dict[str, Any]:
        """What a row of the database holds, which is in the cache from now on."""
        data: dict[str, Any] = self.decode(row.session_data)
        self._keep(data, self.get_expiry_age(expiry=row.expire_date))
        return data

    def _keep(self, data: dict[str, Any], age_s: int) -> None:
        with suppress(RedisError):
            self._cache.set(self.cache_key, data, min(age_s, CACHED_S))
