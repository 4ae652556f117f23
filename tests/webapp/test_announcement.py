"""What an operator tells everybody who opens a chat, until it is put away, over or gone."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone

from chat.announcements import COOKIE, forget_announcement
from chat.models import Announcement
from webapp.models import User

pytestmark = [
    pytest.mark.django_db(transaction=True),  # the page asks on another connection
    pytest.mark.usefixtures("clean_redis", "of_the_test"),
]

ADD, CHANGE = "/admin/chat/announcement/add/", "/admin/chat/announcement/1/change/"
FORM = {"text": "Tonight we move: https://example.org/move", "tone": "warning"}


@pytest.fixture
def of_the_test() -> Iterator[None]:
    """What is known of the last one's is forgotten, as all of its rows are."""
    forget_announcement()
    yield
    forget_announcement()


@pytest.fixture
def reader(alice: User) -> Client:
    reader = Client()
    reader.force_login(alice)
    return reader


def shown_in(client: Client) -> str:
    """The box with the announcement; empty where there is none."""
    page = client.get("/").content.decode()
    _, found, rest = page.partition('<div class="announcement')
    return found + rest.partition("</div>")[0] if found else ""


def test_what_is_written_in_the_console_stands_above_the_chats(
    console: Client, reader: Client
) -> None:
    assert not shown_in(reader)
    assert console.post(ADD, FORM).status_code == 302
    box = shown_in(reader)
    assert "Tonight we move" in box
    assert 'href="https://example.org/move"' in box
    assert 'data-tone="warning"' in box
    assert console.post("/admin/chat/announcement/1/delete/", {"post": "yes"}).status_code == 302
    assert not shown_in(reader)


def test_what_was_put_away_comes_again_once_it_has_changed(console: Client, reader: Client) -> None:
    console.post(ADD, FORM)
    reader.cookies[COOKIE] = Announcement.objects.get().key
    assert not shown_in(reader)
    console.post(CHANGE, {**FORM, "text": "Tomorrow we move"})
    assert "Tomorrow we move" in shown_in(reader)


def test_it_is_over_when_it_is_said_to_be(reader: Client) -> None:
    Announcement.objects.create(text="Soon", until=timezone.now() + timedelta(minutes=1))
    assert "Soon" in shown_in(reader)
    Announcement.objects.update(until=timezone.now() - timedelta(seconds=1))
    forget_announcement()
    assert not shown_in(reader)


def test_it_is_text(reader: Client) -> None:
    Announcement.objects.create(text="<script>alert(1)</script> javascript:alert(2)")
    box = shown_in(reader)
    assert "&lt;script&gt;" in box
    assert "href" not in box.replace('<use href="#icon', "")


def test_who_is_not_signed_in_reads_none(client: Client) -> None:
    Announcement.objects.create(text="Among us")
    assert "Among us" not in client.get("/", follow=True).content.decode()


def test_only_who_may_use_the_console_writes_one(reader: Client) -> None:
    assert reader.post(ADD, FORM).status_code in (302, 403)
    assert not Announcement.objects.exists()


def test_there_is_one(console: Client) -> None:
    console.post(ADD, FORM)
    Announcement.objects.get()
    with pytest.raises(IntegrityError):
        Announcement.objects.create(pk=2, text="Another one")


@pytest.mark.parametrize("wrong", [{"text": ""}, {"text": "x" * 301}, {"tone": "loud"}])
def test_what_is_none_is_refused(console: Client, wrong: dict[str, Any]) -> None:
    assert console.post(ADD, FORM | wrong).status_code == 200
    assert not Announcement.objects.exists()
