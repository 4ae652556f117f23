"""Whose socket it is: decided for many together as Django would decide it for each."""

import asyncio
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from chat.db import in_db
from webapp.models import User
from webapp.principal import session_store, user_of_session
from webapp.socket_users import _users_in_db, user_of_session_key

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_redis")]

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


def a_session(user: User, **changes: Any) -> str:
    store = session_store()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = BACKEND
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    for name, value in changes.items():
        store[name] = value
    store.save()
    return str(store.session_key)


def users_of(*keys: str) -> list[int | None]:
    return [getattr(one, "pk", None) for one in _users_in_db(keys)]


def test_each_gets_their_own_user(alice: User, bob: User) -> None:
    mine, theirs = a_session(alice), a_session(bob)
    assert users_of(mine, theirs, mine, "unknown-key-of-nobody", "") == [
        alice.pk,
        bob.pk,
        alice.pk,
        None,
        None,
    ]
    found = _users_in_db([mine, mine])
    assert found[0] is not found[1], "two tabs of one share an object"
    assert found[0].granted_models == []  # type: ignore[union-attr]
    assert found[0].tier.slug == "free"  # type: ignore[union-attr]


def test_many_cost_one_query(alice: User, bob: User, charlie: User) -> None:
    keys = [a_session(user) for user in (alice, bob, charlie)] * 5
    users_of(keys[0])  # what holds for all is asked once in two seconds
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert users_of(*keys) == [alice.pk, bob.pk, charlie.pk] * 5
    assert len(queries) == 1


def test_also_where_redis_has_forgotten_them(alice: User, bob: User) -> None:
    keys = [a_session(alice), a_session(bob)]
    cache.clear()
    assert users_of(*keys) == [alice.pk, bob.pk]


def test_what_has_ended_is_nobodys(alice: User, bob: User, charlie: User, admin: User) -> None:
    ended, suspended, changed = a_session(alice), a_session(bob), a_session(charlie)
    session_store(ended).flush()
    User.objects.filter(pk=bob.pk).update(is_active=False)
    charlie.set_password("another one")
    charlie.save()
    forged = a_session(admin, **{HASH_SESSION_KEY: "0" * 64})
    without = a_session(admin, **{HASH_SESSION_KEY: ""})
    elsewhere = a_session(admin, **{BACKEND_SESSION_KEY: "django.contrib.auth.backends.Gone"})
    odd = a_session(admin, **{SESSION_KEY: "1 OR 1=1"})
    keys = [ended, suspended, changed, forged, without, elsewhere, a_session(admin)]
    assert users_of(*keys) == [None] * 6 + [admin.pk]
    for key in keys[:6]:
        assert user_of_session(session_store(key)) is None, "Django says otherwise"
    with pytest.raises(ValidationError):
        user_of_session(session_store(odd))
    (found,) = _users_in_db([odd])
    assert isinstance(found, ValidationError), "one odd session is told as it is"


def test_a_rotated_secret_goes_on_opening(alice: User) -> None:
    key = a_session(alice)
    from django.conf import settings

    old = settings.SECRET_KEY
    with override_settings(SECRET_KEY="x" * 50, SECRET_KEY_FALLBACKS=[old]):
        assert users_of(key) == [alice.pk]
        assert user_of_session(session_store(key)) == alice
        assert session_store(key).exists(key), "Django would have given it another key"
    with override_settings(SECRET_KEY="y" * 50):
        assert users_of(key) == [None]


async def test_asked_at_once_they_are_asked_together(alice: User, bob: User) -> None:
    keys = [await in_db(a_session)(user) for user in (alice, bob)]
    found = await asyncio.gather(*(user_of_session_key(keys[n % 2]) for n in range(40)))
    assert [user.pk for user in found] == [alice.pk, bob.pk] * 20
    assert isinstance(await user_of_session_key(None), AnonymousUser)
