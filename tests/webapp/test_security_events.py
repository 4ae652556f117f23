"""The trail: who came in, who tried to, what opens accounts; and how little a stranger makes of it."""

import logging
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client import REGISTRY

from chat import sharing
from chat.models import Conversation, Message
from tests.conftest import PASSWORD
from webapp import security_events
from webapp.api_keys import create_api_key
from webapp.chores import write_counted_events
from webapp.models import SecurityEvent, User
from webapp.security_events import MAX_ROWS, MAX_ROWS_OF_ALL, Kind, note_event, write_counted
from webapp.tasks import clear_sessions
from webapp.tenancy import as_nobody, as_system, as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]

LOGIN = "/accounts/login/"
LIST = "/admin/webapp/securityevent/"
TYPED = "My.Own.Password@in-the-wrong-field.example"


@pytest.fixture(autouse=True)
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that begins at its end would count in two."""
    begun = timezone.now()
    monkeypatch.setattr(security_events, "_this_minute", lambda: begun)
    monkeypatch.setattr(security_events, "_counted", Counter())


def events(**which: Any) -> list[SecurityEvent]:
    with as_system():
        return list(SecurityEvent.objects.filter(**which).order_by("pk"))


def told(**which: Any) -> list[tuple[str, str]]:
    return [(row.kind, row.how) for row in events(**which)]


def sign_in(login: str, password: str, address: str = "192.0.2.1") -> Client:
    client = Client(REMOTE_ADDR=address)
    client.post(LOGIN, {"login": login, "password": password})
    return client


def fails_from(address: str, times: int = 1) -> None:
    from django.contrib.auth.models import AnonymousUser
    from django.test import RequestFactory

    request = RequestFactory().post(LOGIN, REMOTE_ADDR=address)
    request.user = AnonymousUser()
    for _ in range(times):
        note_event(Kind.SIGN_IN_FAILED, how="password", login=TYPED, request=request)


def write() -> None:
    with as_system():
        write_counted()


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign, assignment]
    logger = logging.getLogger("webapp.security_events")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_who_comes_in_and_who_tries_to(alice: User) -> None:
    sign_in(alice.email, "wrong", "2001:db8::7")
    sign_in(alice.email, PASSWORD)
    failed, succeeded = events()
    assert (failed.kind, failed.account, failed.address) == (
        Kind.SIGN_IN_FAILED,
        None,
        "2001:db8::7",
    )
    assert failed.login == security_events.hash_of(" ALICE@example.org")
    assert (succeeded.kind, succeeded.account, succeeded.how) == (
        Kind.SIGN_IN,
        alice.pk,
        "password",
    )
    assert succeeded.address == "192.0.2.1"


def test_what_was_typed_stands_nowhere(lines: list[logging.LogRecord], db: None) -> None:
    sign_in(TYPED, "hunter2-hunter2")
    (row,) = events()
    (line,) = lines
    everything = f"{row.__dict__} {line.__dict__}".lower()
    assert row.login in everything
    for hidden in (TYPED.lower(), "hunter2"):
        assert hidden not in everything
    assert line.address == "192.0.2.1"  # type: ignore[attr-defined]


def test_what_a_limit_refuses(alice: User) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    for _ in range(12):
        client.post(LOGIN, {"login": alice.email, "password": "wrong"})
    refused = events(kind=Kind.REFUSED)
    assert [row.how for row in refused] == ["at the door login"] * 2
    assert {row.login for row in refused} == {security_events.hash_of(alice.email)}


def test_a_stranger_fills_no_table(db: None) -> None:
    fails_from("192.0.2.1", 100)
    write()
    rows, (rest,) = events(minute=None), events(minute__isnull=False)
    assert len(rows) == MAX_ROWS
    assert (rest.address, rest.num_more, rest.login) == ("192.0.2.1", 100 - MAX_ROWS, "")


def test_a_network_of_ipv6_is_one_stranger(db: None) -> None:
    for number in range(MAX_ROWS + 5):
        fails_from(f"2001:db8::{number:x}")
    write()
    assert len(events(minute=None)) == MAX_ROWS
    (rest,) = events(minute__isnull=False)
    assert rest.num_more == 5


def test_many_strangers_fill_none_either(db: None) -> None:
    for number in range(MAX_ROWS_OF_ALL + 7):
        fails_from(f"192.0.2.{number}")
    write()
    assert len(events(minute=None)) == MAX_ROWS_OF_ALL
    (rest,) = events(minute__isnull=False)
    assert (rest.address, rest.num_more) == (None, 7)


def test_what_is_beyond_is_written_by_the_chore_alone(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_from("192.0.2.1", MAX_ROWS)
    with CaptureQueriesContext(connection) as captured:
        fails_from("192.0.2.1", 20)
    assert not [one for one in captured if not one["sql"].startswith("SELECT")]
    with monkeypatch.context() as broken:
        broken.setattr(security_events, "_count_more", raising)
        with pytest.raises(OperationalError):
            write()
    fails_from("192.0.2.1", 5)
    with CaptureQueriesContext(connection) as captured:
        async_to_sync(write_counted_events)()
        async_to_sync(write_counted_events)()
    (rest,) = events(minute__isnull=False)
    assert rest.num_more == 25, "and nothing is lost when a write fails"
    assert len([one for one in captured if one["sql"].startswith("UPDATE")]) <= 1


def raising(*args: Any, **kwargs: Any) -> None:
    raise OperationalError


def test_nor_does_an_account_and_one_leaves_room_for_another(alice: User, bob: User) -> None:
    for _ in range(MAX_ROWS + 3):
        note_event(Kind.API_KEY, account=alice.pk, how="made")
    note_event(Kind.API_KEY, account=bob.pk, how="made")
    assert len(events(account=alice.pk, minute=None)) == MAX_ROWS
    (rest,) = events(account=alice.pk, minute__isnull=False)
    assert rest.num_more == 3
    assert len(events(account=bob.pk)) == 1


def test_second_steps_that_are_wrong_and_those_that_come_and_go(alice: User) -> None:
    TOTP.activate(alice, "SECRET" * 4)
    client = sign_in(alice.email, PASSWORD)
    client.post("/accounts/second-step/", {"code": "000000"})
    assert told() == [(Kind.SIGN_IN_FAILED, "second step")]
    assert events()[0].account == alice.pk


def test_passwords_keys_links_and_exports(alice: User) -> None:
    client = sign_in(alice.email, PASSWORD)
    client.post(
        "/accounts/password/change/",
        {
            "oldpassword": PASSWORD,
            "password1": "quite another horse",
            "password2": "quite another horse",
        },
    )
    key, _ = create_api_key(alice, name="notebook")
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice, title="private")
        answer = Message.objects.create(conversation=chat, role="assistant", text="secret")
        row = sharing.create(alice, sharing.ShareWish(chat.pk, answer.pk))
        sharing.revoke(alice, row.pk)
    client.get("/settings/export")
    assert told(account=alice.pk) == [
        (Kind.SIGN_IN, "password"),
        (Kind.PASSWORD, "changed"),
        (Kind.API_KEY, f"made: {key.prefix}"),
        (Kind.SHARE, "made: snapshot"),
        (Kind.SHARE, "revoked: 1"),
        (Kind.EXPORT, ""),
    ]
    assert "private" not in str([row.__dict__ for row in events()])


def test_what_administrators_do_to_an_account(client: Client, admin: User, alice: User) -> None:
    client.force_login(admin)
    path = f"/admin/webapp/user/{alice.pk}"
    form = {
        "email": alice.email,
        "name": "Alice",
        "tier": "pro",
        "is_staff": "on",
        "is_active": "on",
    }
    assert client.post(f"{path}/change/", form).status_code == 302
    new = {"password1": "quite another horse", "password2": "quite another horse"}
    client.post(f"{path}/password/", new)
    client.post(f"{path}/delete/", {"post": "yes"})
    rights, password, *_, end = events(account=alice.pk)
    assert (rights.kind, rights.how) == (
        Kind.RIGHTS,
        "changed in the console: is_staff, tier",
    )
    assert (password.kind, password.how) == (Kind.PASSWORD, "changed in the console")
    assert end.kind == Kind.DELETION
    assert {row.actor for row in events(account=alice.pk)} == {admin.pk}


def test_it_is_nobodys_to_read_but_the_systems(alice: User, charlie: User) -> None:
    note_event(Kind.SIGN_IN, account=alice.pk)
    for scope in (as_user(alice.pk), as_user(charlie.pk), as_nobody()):
        with scope:
            assert not SecurityEvent.objects.exists()
    assert [row["kind"] for row in security_events.events_of(alice.pk)] == [Kind.SIGN_IN]
    assert security_events.events_of(charlie.pk) == []


def test_rows_go_when_their_time_is_over(alice: User, settings: Any) -> None:
    note_event(Kind.SIGN_IN, account=alice.pk)
    note_event(Kind.EXPORT, account=alice.pk)
    ended = timezone.now() - timedelta(days=settings.SECURITY_DAYS + 1)
    with as_system():
        SecurityEvent.objects.filter(kind=Kind.SIGN_IN).update(at=ended)
        clear_sessions()
    assert told() == [(Kind.EXPORT, "")]


def test_the_console_shows_it_and_changes_nothing(
    client: Client, admin: User, alice: User, bob: User
) -> None:
    sign_in(alice.email, "wrong", "192.0.2.77")
    sign_in(bob.email, PASSWORD, "192.0.2.88")
    client.force_login(admin)
    page = client.get(f"{LIST}?q=alice@example.org").content.decode()
    assert "192.0.2.77" in page
    assert "192.0.2.88" not in page
    page = client.get(f"{LIST}?kind__exact=sign_in&q=bob@example.org").content.decode()
    assert "192.0.2.88" in page
    row = events()[0]
    assert client.get(f"{LIST}{row.pk}/change/").status_code == 200
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{row.pk}/change/", {"how": "x"}).status_code == 403
    assert client.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    bob.is_staff = True
    bob.save(update_fields=["is_staff"])
    bob.user_permissions.add(Permission.objects.get(codename="view_signin"))
    client.force_login(bob)
    assert client.get(LIST).status_code == 403


def test_monitoring_counts_it(alice: User) -> None:
    def number(outcome: str) -> float:
        return REGISTRY.get_sample_value("vitrine_sign_ins_total", {"outcome": outcome}) or 0

    before = {outcome: number(outcome) for outcome in ("succeeded", "failed", "refused")}
    for password in (PASSWORD, "wrong"):
        sign_in(alice.email, password)
    note_event(Kind.REFUSED)
    for outcome, was in before.items():
        assert number(outcome) == was + 1, outcome
