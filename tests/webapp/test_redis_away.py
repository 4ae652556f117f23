"""Redis refuses, or hangs: who is signed in stays so, who signs in comes in, and limits hold."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from kombu.exceptions import OperationalError

import webapp.cache
from chat import cooling
from moderation.models import Strike
from tests.conftest import PASSWORD
from tests.webapp.test_accounts import sign_in
from tests.webapp.test_sign_ins import FIREFOX, browser_of_user, is_signed_in
from tests.webapp.test_signup_work import BITS, SIGNUP, challenge_of, worked
from tests.webapp.test_socket_users import a_session, users_of
from tests.webapp.test_two_step import SECOND_STEP, add_app, code_of, password_step
from webapp import celery
from webapp.cache import PATIENCE_S
from webapp.models import SignIn, User
from webapp.principal import session_store
from webapp.rate_limits import LocalWindows
from webapp.sessions import CACHED_S, SessionStore
from webapp.sign_ins import end_sign_ins
from webapp.tasks import reconsider_accounts
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

Away = Callable[[], None]


@pytest.fixture
def goes(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Redis is at this address from now on."""
    monkeypatch.setattr("webapp.rate_limits._local", LocalWindows())

    def to(address: str) -> None:
        webapp.cache._away_until_s = 0.0
        settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": address}}

    yield to
    webapp.cache._away_until_s = 0.0


@pytest.fixture
def refuses(goes: Callable[[str], None], tmp_path: Path) -> Away:
    return lambda: goes(f"unix://{tmp_path}/nobody")


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[str]:
    """The path of a socket that takes connections and never answers."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "silent"))
        listening.listen(128)
        yield str(tmp_path / "silent")


def test_one_that_hangs_holds_up_once_and_not_each_request(
    goes: Callable[[str], None], silent: str, alice: User, bob: User
) -> None:
    keys = [a_session(user) for user in (alice, bob) for _ in range(10)]
    goes(f"unix://{silent}")
    start_s = time.monotonic()
    assert users_of(*keys, "unknown-key-of-nobody") == [alice.pk] * 10 + [bob.pk] * 10 + [None]
    assert [session_store(key).load()["_auth_user_id"] for key in keys[-2:]] == [str(bob.pk)] * 2
    a_session(alice)
    assert time.monotonic() - start_s < 3 * PATIENCE_S


def test_what_ends_without_it_does_not_come_back_with_it(
    refuses: Away, goes: Callable[[str], None], settings: Any, alice: User
) -> None:
    there = settings.CACHES["default"]["LOCATION"]
    browsers = [browser_of_user(alice, FIREFOX, f"192.0.2.{n}") for n in range(3)]
    stores = [SessionStore(browser.session.session_key) for browser in browsers]
    refuses()
    with as_system():
        assert end_sign_ins(SignIn.objects.filter(user=alice)) == 3
    assert not any(map(is_signed_in, browsers))
    goes(there)
    client = cache._cache.get_client()  # type: ignore[attr-defined]
    for store in stores:
        assert 0 < client.ttl(cache.make_key(store.cache_key)) <= CACHED_S
        client.delete(cache.make_key(store.cache_key))
    assert not any(map(is_signed_in, browsers))


def test_signing_in_and_out_goes_on_and_guessing_has_its_limit(
    refuses: Away, client: Client, alice: User
) -> None:
    refuses()
    assert sign_in(client, alice.email) == 302
    assert is_signed_in(client)
    client.post("/accounts/logout/")
    assert not is_signed_in(client)
    codes = [sign_in(client, alice.email, "wrong") for _ in range(10)]
    assert codes == [200] * 9 + [429]
    response = client.post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    assert 1 <= int(response.headers["Retry-After"]) <= 300
    assert sign_in(client, alice.email, REMOTE_ADDR="198.51.100.7") == 302


def test_what_works_only_once_waits_for_it(
    refuses: Away, settings: Any, client: Client, alice: User, admin: User
) -> None:
    client.force_login(alice)
    secret = add_app(client)
    visitor = Client()
    password_step(visitor, alice)
    settings.SIGNUP_WORK_BITS = BITS
    challenge = challenge_of(Client())
    refuses()
    form = {"name": "D", "email": "dora@example.org", "password1": PASSWORD}
    form |= {"challenge": challenge, "nonce": worked(challenge)}
    for response in (
        visitor.post(SECOND_STEP, {"code": code_of(secret, 1)}),
        Client().post(SIGNUP, form),
        Client().post(
            "/api/auth/token",
            {"email": alice.email, "password": PASSWORD, "code": code_of(secret, 1)},
            content_type="application/json",
        ),
    ):
        assert response.status_code == 503, response.content.decode()
        assert int(response.headers["Retry-After"]) >= 1
    assert not User.objects.filter(email="dora@example.org").exists()


def test_who_has_too_many_strikes_is_suspended_when_it_is_back(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(celery.app, "send_task", refuse)
    for user, points in ((alice, 10), (bob, 9)):
        with as_user(user.pk):
            Strike.objects.create(owner=user, points=points)
            cooling.struck(str(user.pk))
    assert User.objects.get(pk=alice.pk).is_active
    reconsider_accounts()
    assert not User.objects.get(pk=alice.pk).is_active
    assert User.objects.get(pk=bob.pk).is_active
    User.objects.filter(pk=alice.pk).update(is_active=True)  # an administrator's word
    reconsider_accounts()
    assert User.objects.get(pk=alice.pk).is_active


def test_a_task_for_one_that_hangs_is_given_up(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(celery.app.conf.broker_transport_options)
    assert options["socket_timeout"] > 2, "longer than a worker waits for a task"
    with celery.app.connection_for_write(
        f"redis+socket://{silent}", transport_options={**options, "socket_timeout": 0.5}
    ) as connection:
        start_s = time.monotonic()
        with pytest.raises(OperationalError):
            celery.app.send_task("webapp.tasks.clear_sessions", connection=connection, retry=False)
        assert time.monotonic() - start_s < 10
