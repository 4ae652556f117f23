"""Who the cookies of sockets belong to: asked by all sockets at the same time together.

A socket asks when it opens, before everything that it writes, and every few seconds.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.utils.crypto import constant_time_compare

from chat.db import in_db
from chat.gathering import Gathering
from webapp.models import User
from webapp.principal import session_store, user_of_session
from webapp.second_step_rule import who_owe_one


async def user_of_session_key(session_key: str | None) -> User | AnonymousUser:
    """The user of a session as of now; nobody, where there is none, or it has ended."""
    if session_key is None:
        return AnonymousUser()
    return await _asking.ask(session_key)


async def _users_of(session_keys: Sequence[str]) -> Sequence[User | AnonymousUser | Exception]:
    return await in_db(_users_in_db)(session_keys)


def _users_in_db(session_keys: Sequence[str]) -> list[User | AnonymousUser | Exception]:
    """Those for whom nothing is to be said but yes are looked up in one query; all others, one by one,
    are Django's to judge: it knows rotated secrets, and ends sessions that are no more."""
    stores = [session_store(key) for key in session_keys]
    type(stores[0]).load_together(stores)
    ids = [_plain_user_id(store) for store in stores]
    users = {str(user.pk): user for user in User.objects.filter(pk__in=set(filter(None, ids)))}
    found = [_judged(store, users.get(id_ or "")) for store, id_ in zip(stores, ids, strict=True)]
    owing = who_owe_one(user for user in found if isinstance(user, User))
    return [AnonymousUser() if getattr(one, "pk", None) in owing else one for one in found]


def _plain_user_id(store: Any) -> str | None:
    """Where the backend that signed somebody in does no more than to look for the user's row."""
    backend = store.get(BACKEND_SESSION_KEY)
    if backend not in settings.AUTHENTICATION_BACKENDS:
        return None
    is_plain = type(load_backend(backend)).get_user is ModelBackend.get_user
    user_id = str(store.get(SESSION_KEY, ""))
    return user_id if is_plain and user_id.isdecimal() else None


def _judged(store: Any, user: User | None) -> User | AnonymousUser | Exception:
    session_hash = store.get(HASH_SESSION_KEY)
    if user is not None and user.is_active and _is_proven(session_hash, user):
        return copy(user)  # two tabs of one share nothing
    try:
        return user_of_session(store) or AnonymousUser()
    except Exception as error:
        return error


def _is_proven(session_hash: str | None, user: User) -> bool:
    proofs = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(session_hash or "", proof) for proof in proofs)


_asking: Gathering[str, User | AnonymousUser] = Gathering(_users_of)
