"""Whose last day is unlike their days before, in the console."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Usage
from moderation.models import Decision
from webapp import anomalies
from webapp.anomalies import signal, signals_of, unusual
from webapp.models import SignIn, User
from webapp.tenancy import as_system

DAY = timedelta(days=1)


def test_far_is_above_the_floor_the_mean_and_the_spread() -> None:
    assert not signal("answers", 49, [0] * 14).is_far
    assert signal("answers", 50, [0] * 14).is_far
    assert signal("answers", 50, []).is_far
    assert not signal("answers", 300, [100] * 14).is_far
    assert signal("answers", 301, [100] * 14).is_far
    assert not signal("answers", 301, [0, 200] * 7).is_far


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> datetime:
    now = timezone.now().astimezone(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    monkeypatch.setattr(anomalies.timezone, "now", lambda: now)
    return now


def used(user: User, now: datetime, ago: int, answers: int, tokens: int = 10) -> None:
    day = now.date() - ago * DAY
    with as_system():
        Usage.objects.create(
            owner=user, day=day, model="m", num_requests=answers, prompt_tokens=tokens
        )


def asked(user: User, at: datetime, action: str, number: int, source: str = "chat") -> None:
    with as_system():
        for _ in range(number):
            row = Decision.objects.create(owner=user, stage="input", source=source, action=action)
            Decision.objects.filter(pk=row.pk).update(created_at=at)


def signed_in(user: User, at: datetime, *addresses: str) -> None:
    with as_system():
        for address in addresses:
            key = f"{user.pk} {address} {at:%d}"
            row = SignIn.objects.create(
                user=user, session_key=key, address=address, last_seen_at=at
            )
            SignIn.objects.filter(pk=row.pk).update(created_at=at)


def far_of(user: User) -> dict[str, tuple[float, float]]:
    return {one.name: (one.value, one.mean) for one in signals_of(user.pk) if one.is_far}


@pytest.mark.django_db
def test_the_ledger_is_compared_with_the_days_before(
    alice: User, bob: User, noon: datetime
) -> None:
    User.objects.update(date_joined=noon - 100 * DAY)
    for ago in range(2, 16):
        used(alice, noon, ago, 10, tokens=1000)
        used(bob, noon, ago, 80)
    used(alice, noon, 0, 40)
    used(alice, noon, 1, 40, tokens=400_000)
    used(bob, noon, 0, 100)
    assert far_of(alice) == {"answers": (60, 10), "tokens": (200_010, 1000)}
    assert far_of(bob) == {}
    assert [(one.user_id, len(one.signals)) for one in unusual()] == [(alice.pk, 2)]


@pytest.mark.django_db
def test_what_is_blocked_counts_in_percent(alice: User, bob: User, noon: datetime) -> None:
    asked(alice, noon - timedelta(hours=1), "block", 5)
    asked(alice, noon - timedelta(hours=1), "allow", 5)
    asked(alice, noon - 5 * DAY, "block", 1)
    asked(alice, noon - 5 * DAY, "allow", 9)
    asked(bob, noon - timedelta(hours=1), "block", 4)
    asked(bob, noon - timedelta(hours=1), "block", 40, source="title")
    assert far_of(alice) == {"blocked": (50, 10)}
    assert far_of(bob) == {}
    assert [(one.name, one.value) for one in signals_of(bob.pk)][-1] == ("blocked", 100)
    assert [one.user_id for one in unusual()] == [alice.pk]


@pytest.mark.django_db
def test_addresses_are_those_of_new_sign_ins(alice: User, bob: User, noon: datetime) -> None:
    hour_ago = noon - timedelta(hours=1)
    signed_in(alice, hour_ago, *(f"192.0.2.{n}" for n in range(6)))
    signed_in(alice, noon - 3 * DAY, "192.0.2.1")
    signed_in(bob, hour_ago, *(f"192.0.2.{n}" for n in range(4)))
    assert set(far_of(alice)) == {"addresses"}
    assert far_of(bob) == {}


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_redis")
def test_the_console_shows_it_and_nobody_else_sees_it(
    client: Client, admin: User, alice: User, charlie: User, noon: datetime
) -> None:
    used(alice, noon, 0, 1234)
    page = f"/admin/webapp/user/{alice.pk}/change/"
    client.force_login(charlie)
    for path in ("/admin/", page):
        assert client.get(path).status_code in (302, 403)
    client.force_login(admin)
    overview = client.get("/admin/").content.decode()
    assert "Unusual in the last 24 hours" in overview
    assert "1,234" in overview
    assert "1,234" in client.get(page).content.decode()
    assert client.get("/admin/webapp/user/x/change/").status_code == 302
