"""Chats of a tier that does not keep them for ever go when they are old, and no others."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from chat import library
from chat.ids import uuid7
from chat.models import Conversation, Message, Role
from chat.retention import delete_old
from webapp.celery import app
from webapp.models import SecurityEvent, Tier, User
from webapp.tasks import delete_old_chats
from webapp.tenancy import as_system

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
Made = Callable[..., Conversation]


def _id_of(age: timedelta) -> UUID:
    """As a row that is so old has one."""
    fresh = uuid7()
    milliseconds = int((timezone.now() - age).timestamp() * 1000)
    return UUID(int=milliseconds << 80 | fresh.int & ((1 << 80) - 1))


def chat(
    owner: User, age: timedelta, made: timedelta | None = None, **fields: object
) -> Conversation:
    """Something was said in it so long ago; it was made then, or at another time."""
    row = Conversation.objects.create(
        pk=_id_of(age if made is None else made), owner=owner, **fields
    )
    Message.objects.create(conversation=row, role=Role.USER, text="hello")
    Conversation.objects.filter(pk=row.pk).update(updated_at=timezone.now() - age)
    return row


def left() -> set[UUID]:
    return set(Conversation.objects.filter(deleted_at=None).values_list("pk", flat=True))


@pytest.fixture
def month(alice: User) -> None:
    """Alice's tier keeps chats for thirty days; Bob's keeps them."""
    with as_system():
        tier = Tier.objects.create(slug="short", name="Short", chat_days=30)
        User.objects.filter(pk=alice.pk).update(tier=tier)


@pytest.mark.usefixtures("month")
def test_what_is_older_goes_whatever_it_is_and_nobody_elses(alice: User, bob: User) -> None:
    now = timezone.now()
    with as_system():
        old = [
            chat(alice, 31 * DAY),
            chat(alice, 400 * DAY, pinned_at=now),
            chat(alice, 31 * DAY, archived_at=now),
        ]
        stays = [
            chat(alice, 29 * DAY),
            chat(alice, 29 * DAY, made=300 * DAY),
            chat(alice, 300 * DAY, made=DAY),  # imported yesterday
            chat(bob, 300 * DAY),
        ]
        assert delete_old(now) == {(alice.pk, 30): len(old)}
        assert left() == {row.pk for row in stays}
        assert not delete_old(now)
        assert library.purge(now + DAY) == len(old)
        assert Message.with_deleted.count() == len(stays)


@pytest.mark.usefixtures("month")
def test_more_than_one_portion_goes_at_once(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.retention.PORTION", 2)
    with as_system():
        for _ in range(5):
            chat(alice, 31 * DAY)
        assert delete_old(timezone.now()) == {(alice.pk, 30): 5}


@pytest.mark.usefixtures("month")
def test_the_trail_tells_of_it_once(alice: User) -> None:
    with as_system():
        chat(alice, 31 * DAY)
    delete_old_chats()
    delete_old_chats()
    with as_system():
        [event] = SecurityEvent.objects.filter(kind=SecurityEvent.Kind.RETENTION)
    assert (event.account, event.how) == (alice.pk, "1 chat, 30 days after the last message")
    assert any(entry["task"] == delete_old_chats.name for entry in app.conf.beat_schedule.values())


@pytest.mark.usefixtures("month")
def test_users_read_of_it_where_it_holds(alice: User, bob: User) -> None:
    client = Client()
    words = "A chat is deleted 30 days after its last message"
    client.force_login(alice)
    assert words in client.get("/settings/").content.decode()
    client.force_login(bob)
    assert "How long chats are kept" not in client.get("/settings/").content.decode()


@pytest.mark.parametrize("days", [0, -1])
def test_no_tier_keeps_chats_for_less_than_a_day(days: int) -> None:
    with pytest.raises((IntegrityError, ValueError)), as_system(), transaction.atomic():
        Tier.objects.create(slug="none", name="None", chat_days=days)
