"""Which chats have an answer that nobody saw come."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.reader import Frame, Reader, a_reader
from tests.sites import Site, wait_until


@pytest.fixture
def alice(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "alice")


@pytest.fixture
def charlie(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "charlie")


def posted(reader: Reader) -> str:
    """A chat that a program began, and whose answer nobody follows; once that has ended."""
    sent = reader.change("POST", "/api/messages", text="Hello", client_id="posted")
    assert sent.status_code == 201, sent.text
    chat: str = sent.json()["conversation"]["id"]
    wait_until(lambda: not seen(reader, chat)["running"], what="the answer")
    return chat


def seen(reader: Reader, chat: str) -> Frame:
    found: Frame = reader.conversation(chat)["conversation"]
    return found


def mark(reader: Reader, chat: str, **values: Any) -> Any:
    return reader.change("PATCH", f"/api/conversations/{chat}", **values)


def test_what_somebody_follows_is_read(alice: Reader) -> None:
    accepted = alice.send("Hello")
    alice.hear_end(accepted["run"])
    chat = accepted["conversation"]["id"]
    told = alice.hear_until(type="conversation.changed")
    assert (told["conversation"]["id"], told["conversation"]["unread"]) == (chat, False)
    assert seen(alice, chat)["unread"] is False


def test_what_nobody_follows_is_not_until_it_is_shown(alice: Reader) -> None:
    chat = posted(alice)
    wait_until(lambda: seen(alice, chat)["unread"], what="the mark")
    before = seen(alice, chat)
    read = mark(alice, chat, unread=False).json()["conversation"]
    assert read == before | {"unread": False}, "no new version, and its place in the list"
    changed = mark(alice, chat, unread=True, title="Later", version=read["version"])
    now = changed.json()["conversation"]
    assert (now["unread"], now["version"]) == (True, read["version"] + 1)


def test_other_tabs_hear_of_it(alice: Reader) -> None:
    chat = posted(alice)
    wait_until(lambda: seen(alice, chat)["unread"], what="the mark")
    with alice.another_tab() as tab:
        tab.hear_until(type="hello")
        mark(alice, chat, unread=False)
        told = tab.hear_until(type="conversation.changed")
    assert (told["conversation"]["id"], told["conversation"]["unread"]) == (chat, False)


def test_charlie_marks_nothing(alice: Reader, charlie: Reader) -> None:
    chat = posted(alice)
    wait_until(lambda: seen(alice, chat)["unread"], what="the mark")
    assert mark(charlie, chat, unread=False).status_code == 404
    many = charlie.change("PATCH", "/api/conversations", changes=[{"id": chat, "unread": False}])
    assert [one["code"] for one in many.json()["refused"]] == ["not_found"]
    assert seen(alice, chat)["unread"] is True
