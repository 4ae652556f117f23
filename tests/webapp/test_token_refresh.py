"""Refresh tokens: each works once, and a foreign page gets at none."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier, Event, Lock
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import F
from django.test import Client
from django.utils import timezone

from tests.conftest import PASSWORD
from tests.webapp.token_client import (
    COOKIE,
    REFRESH,
    REVOKE,
    TOKEN,
    WHOAMI,
    ask,
    bearer,
    error_of,
    opens,
    token_of,
    with_cookie,
)
from webapp import token_families, tokens_api
from webapp.asgi import build_application
from webapp.models import SignIn, User
from webapp.request_context import arrived_at
from webapp.sign_ins import end_other_sign_ins, seen_now
from webapp.tenancy import as_system, as_user
from webapp.token_families import FamilyEnded, Overtaken, Reused, refresh_family

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.webapp.urls"),
    pytest.mark.usefixtures("clean_redis"),
]


def test_a_refresh_gives_new_tokens_and_keeps_the_family(client: Client, alice: User) -> None:
    first = token_of(client, alice)
    old = client.cookies[COOKIE].value
    response = client.post(REFRESH)
    assert response.status_code == 200
    assert response.json()["expires_in"] == 900
    assert client.cookies[COOKIE].value != old
    assert client.cookies[COOKIE]["path"] == "/api/auth/"
    assert opens(response.json()["access_token"])
    assert opens(first), "it lives on to its end"
    for _ in range(3):
        assert client.post(REFRESH).status_code == 200
    with as_user(alice.pk):
        assert SignIn.objects.get().refresh_number == 4


def let_leeway_pass() -> None:
    with as_system():
        later = F("refreshed_at") - timedelta(seconds=token_families.LEEWAY_S)
        SignIn.objects.update(refreshed_at=later)


def test_a_token_that_comes_twice_in_a_moment_ends_nothing(client: Client, alice: User) -> None:
    """Two windows of a browser, with one cookie. Who stole it has nothing of it, and is told later."""
    ask(client, alice)
    used = client.cookies[COOKIE].value
    renewed = client.post(REFRESH).json()["access_token"]
    late = with_cookie(used).post(REFRESH)
    assert error_of(late) == (409, "refresh_overtaken")
    assert not late.cookies
    assert opens(renewed)
    let_leeway_pass()
    assert error_of(with_cookie(used).post(REFRESH)) == (401, "refresh_token_reused")
    assert not opens(renewed)


def test_a_refresh_token_used_twice_ends_the_family(client: Client, alice: User) -> None:
    access = token_of(client, alice)
    other = token_of(Client(), alice)
    stolen = client.cookies[COOKIE].value
    renewed = client.post(REFRESH).json()["access_token"]
    let_leeway_pass()
    assert error_of(with_cookie(stolen).post(REFRESH)) == (401, "refresh_token_reused")
    assert not opens(access)
    assert not opens(renewed)
    assert error_of(client.post(REFRESH)) == (401, "invalid_refresh_token"), "nor its owner's"
    assert error_of(with_cookie(stolen).post(REFRESH)) == (401, "invalid_refresh_token")
    assert opens(other), "another sign-in of the same person goes on"


def test_a_token_of_long_ago_ends_the_family_too(client: Client, alice: User) -> None:
    access = token_of(client, alice)
    stolen = client.cookies[COOKIE].value
    for _ in range(3):
        client.post(REFRESH)
    assert error_of(with_cookie(stolen).post(REFRESH))[1] == "refresh_token_reused"
    assert not opens(access)


@pytest.mark.parametrize("value", ["", "x", "a.b.c", "vt_" + "a" * 43])
def test_what_is_no_refresh_token_gets_nothing(client: Client, value: str) -> None:
    assert error_of(with_cookie(value).post(REFRESH)) == (401, "invalid_refresh_token")
    assert error_of(client.post(REFRESH)) == (401, "invalid_refresh_token")


def test_each_refresh_begins_the_seven_days_anew(client: Client, alice: User) -> None:
    ask(client, alice)

    def days_left() -> float:
        return (Session.objects.get().expire_date - timezone.now()).total_seconds() / 86400

    assert 6.99 < days_left() <= 7
    Session.objects.update(expire_date=timezone.now() + timedelta(days=1))
    assert client.post(REFRESH).status_code == 200
    assert 6.99 < days_left() <= 7


@pytest.mark.django_db(transaction=True)
def test_of_requests_at_the_same_moment_one_wins_and_the_family_lives(client: Client) -> None:
    ada = User.objects.create_user("ada@example.org", PASSWORD)
    for _ in range(5):
        ask(client, ada)
        _race(client.cookies[COOKIE].value)


def _race(value: str) -> None:
    """Each has found its token valid before the first of them goes on."""
    barrier = Barrier(6, timeout=20)
    find = token_families.user_of_session

    def find_together(session: Any) -> User | None:
        barrier.wait()
        return find(session)

    def go(_: int) -> Any:
        try:
            client = with_cookie(value)
            return client.post(REFRESH), client
        finally:
            connection.close()

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(6) as pool:
        patch.setattr(token_families, "user_of_session", find_together)
        answers = list(pool.map(go, range(6)))
    statuses = sorted(response.status_code for response, _ in answers)
    assert statuses == [200] + [409] * 5
    for response, winner in answers:
        if response.status_code == 200:
            assert opens(response.json()["access_token"])
            assert winner.post(REFRESH).status_code == 200
        else:
            assert error_of(response)[1] == "refresh_overtaken"
            assert not response.cookies


@pytest.mark.django_db(transaction=True)
def test_without_any_barrier_one_wins_and_never_two(client: Client) -> None:
    ada = User.objects.create_user("ada@example.org", PASSWORD)

    def go(value: str) -> int:
        try:
            return with_cookie(value).post(REFRESH).status_code
        finally:
            connection.close()

    for _ in range(6):
        ask(client, ada)
        with ThreadPoolExecutor(6) as pool:
            statuses = list(pool.map(go, [client.cookies[COOKIE].value] * 12))
        assert sorted(statuses) == [200] + [409] * 11


@pytest.mark.django_db(transaction=True)
def test_who_waited_for_a_thread_is_no_thief(client: Client) -> None:
    """Twelve arrive together where there are two threads, so most begin when the winner is done."""
    ada = User.objects.create_user("ada@example.org", PASSWORD)

    def go(value: str, arrived_at: datetime) -> str:
        try:
            refresh_family(value, address="", user_agent="", arrived_at=arrived_at)
        except Overtaken:
            return "overtaken"
        finally:
            connection.close()
        return "won"

    for _ in range(5):
        access = token_of(client, ada)
        value = client.cookies[COOKIE].value
        arrived = [timezone.now()] * 12
        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(go, [value] * 12, arrived))
        assert sorted(ends) == ["overtaken"] * 11 + ["won"]
        assert opens(access), "the family lives"
        let_leeway_pass()
        with pytest.raises(Reused):
            refresh_family(value, address="", user_agent="", arrived_at=timezone.now())
        assert not opens(access)


@pytest.mark.django_db(transaction=True)
async def test_twelve_requests_that_come_at_once_end_no_family(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through all layers: what counts is when they came, and not when a thread was free for them."""
    first_goes, is_done = Lock(), Event()

    def wait_and_tell(request: Any) -> datetime:
        assert first_goes.acquire(blocking=False) or is_done.wait(30)
        return arrived_at(request)

    def refresh(*args: Any, **kwargs: Any) -> Any:
        try:
            return refresh_family(*args, **kwargs)
        finally:
            is_done.set()

    monkeypatch.setattr(tokens_api, "arrived_at", wait_and_tell)
    monkeypatch.setattr(tokens_api, "refresh_family", refresh)
    ada = await sync_to_async(User.objects.create_user)("ada@example.org", PASSWORD)
    transport = httpx2.ASGITransport(build_application(), client=("198.51.100.7", 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as program:
        for _ in range(4):
            first = await program.post(TOKEN, json={"email": ada.email, "password": PASSWORD})
            cookie = {"Cookie": f"{COOKIE}={first.cookies[COOKIE]}"}
            program.cookies.clear()
            asked = [program.post(REFRESH, headers=cookie) for _ in range(12)]
            answers = await asyncio.gather(*asked)
            program.cookies.clear()
            assert sorted(answer.status_code for answer in answers) == [200] + [409] * 11
            winner = next(answer for answer in answers if answer.status_code == 200)
            headers = bearer(winner.json()["access_token"])
            assert (await program.get(WHOAMI, headers=headers)).status_code == 200
            first_goes.release()
            is_done.clear()


def test_signed_out_before_its_turn(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sign_out(*args: Any) -> Any:
        end_other_sign_ins(alice, None)
        return seen_now(*args)

    ask(client, alice)
    text = client.cookies[COOKIE].value
    monkeypatch.setattr(token_families, "seen_now", sign_out)
    with pytest.raises(Overtaken):
        refresh_family(text, address="", user_agent="", arrived_at=timezone.now())
    with pytest.raises(FamilyEnded):
        refresh_family(text, address="", user_agent="", arrived_at=timezone.now())


def test_a_session_that_ends_during_the_turn_is_not_brought_back(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sign_out(*args: Any) -> Any:
        Session.objects.all().delete()
        return seen_now(*args)

    ask(client, alice)
    monkeypatch.setattr(token_families, "seen_now", sign_out)
    with pytest.raises(FamilyEnded):
        text = client.cookies[COOKIE].value
        refresh_family(text, address="", user_agent="", arrived_at=timezone.now())
    assert not Session.objects.exists()


@pytest.mark.parametrize("path", [TOKEN, REFRESH, REVOKE])
@pytest.mark.parametrize(
    ("origin", "is_ours"),
    [
        (None, True),
        ("http://testserver", True),
        ("https://testserver", False),
        ("http://testserver:8000", False),
        ("http://sub.testserver", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_a_foreign_page_can_use_no_cookie_and_plant_none(
    client: Client, alice: User, path: str, origin: str | None, is_ours: bool
) -> None:
    access = token_of(client, alice)
    headers = {} if origin is None else {"Origin": origin}
    body = {"email": alice.email, "password": PASSWORD}
    response = client.post(path, body, content_type="application/json", headers=headers)
    if is_ours:
        assert response.status_code in (200, 204)
    else:
        assert error_of(response) == (403, "csrf_failed")
        assert not response.cookies
        assert opens(access)


@pytest.mark.parametrize("path", [TOKEN, REFRESH, REVOKE])
def test_nothing_is_had_by_a_link(client: Client, alice: User, path: str) -> None:
    ask(client, alice)
    assert error_of(client.get(path)) == (405, "method_not_allowed")
