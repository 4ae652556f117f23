"""Pages of conversations: everyone once, also where the list changes while it is read."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from chat.errors import BadCursor
from chat.history import PAGE_SIZE, conversation_page
from chat.models import Conversation
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User


@pytest.fixture
def newest_first(alice: "User") -> Iterator[list[Conversation]]:
    with as_user(alice.pk):
        made = [Conversation.objects.create(owner=alice, title=f"c{n}") for n in range(95)]
        yield made[::-1]


def _ids(rows: list[Conversation]) -> list[object]:
    return [row.pk for row in rows]


def test_pages_hold_everyone_once(alice: "User", newest_first: list[Conversation]) -> None:
    found: list[object] = []
    cursor: str | None = ""
    while cursor is not None:
        page = conversation_page(alice, cursor)
        assert len(page.conversations) <= PAGE_SIZE
        found += _ids(page.conversations)
        cursor = page.next_cursor
    assert found == _ids(newest_first)


def test_deleting_the_last_one_shown_hides_nobody(
    alice: "User", newest_first: list[Conversation]
) -> None:
    page = conversation_page(alice)
    newest_first[PAGE_SIZE - 1].delete()
    behind = conversation_page(alice, page.next_cursor or "")
    assert _ids(behind.conversations) == _ids(newest_first[PAGE_SIZE : 2 * PAGE_SIZE])


@pytest.mark.parametrize(
    "cursor", ["x", "~", "2026-01-01~x", "2026-01-01T00:00:00~" + "0" * 32, "a~b~c"]
)
def test_a_made_up_cursor_is_refused(alice: "User", cursor: str) -> None:
    with pytest.raises(BadCursor):
        conversation_page(alice, cursor)
