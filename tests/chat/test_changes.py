"""A tab is told of what has changed: together, at last, and of nothing that is gone."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.db import InterfaceError, OperationalError

from chat import changes, library
from chat.changes import Changes
from chat.db import in_db
from chat.models import Conversation
from chat.values import Value
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


class Chats:
    """Alice's chats, and a tab that is told of them. What is looked up is counted, and may be held."""

    def __init__(self, user: "User", monkeypatch: pytest.MonkeyPatch) -> None:
        made = [Conversation.objects.create(owner=user, title=f"c{n}") for n in range(3)]
        self.user = user
        self.ids = [str(row.pk) for row in made]
        self.asked: list[list[str]] = []
        self.errors: list[Exception] = []
        self.told: list[str] = []
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.changes = Changes(user, self._tell)
        self._summaries = changes._summaries
        monkeypatch.setattr(changes, "in_db", lambda _: self._look_up)
        monkeypatch.setattr(changes, "GATHER_S", 0.01)
        monkeypatch.setattr(changes, "RETRY_S", 0.01)

    async def _look_up(self, user: "User", ids: list[str]) -> list[Value]:
        self.asked.append(ids)
        found = await in_db(self._summaries)(user, ids)
        self.is_asked.set()
        await self.may_answer.wait()
        if self.errors:
            raise self.errors.pop()
        return found

    async def _tell(self, frame: dict[str, Any]) -> None:
        assert frame["type"] == "conversation.changed"
        self.told.append(frame["conversation"]["id"])

    async def held_look_up(self) -> None:
        """Two have changed, and what was found of them is on its way."""
        self.may_answer.clear()
        self.changes.add(self.ids[0])
        self.changes.add(self.ids[1])
        await self.is_asked.wait()

    async def delete(self, conversation_id: str) -> None:
        await in_db(library.change)(self.user, conversation_id, {"deleted": True}, None)

    async def until_told(self, *ids: str) -> None:
        async with asyncio.timeout(5):
            while set(self.told) != set(ids):  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@pytest.fixture
def chats(alice: "User", monkeypatch: pytest.MonkeyPatch) -> Iterator[Chats]:
    with as_user(alice.pk):
        yield Chats(alice, monkeypatch)


async def test_what_changes_together_is_looked_up_once(chats: Chats) -> None:
    for each in [*chats.ids, *chats.ids]:
        chats.changes.add(each)
    await chats.until_told(*chats.ids)
    assert chats.asked == [sorted(chats.ids)]
    chats.changes.add(chats.ids[0])
    await asyncio.sleep(0.1)
    assert chats.asked[1:] == [[chats.ids[0]]]


@pytest.mark.parametrize("error", [OperationalError(), InterfaceError()])
async def test_after_a_failure_it_is_looked_up_again(chats: Chats, error: Exception) -> None:
    chats.errors = [error]
    chats.changes.add(chats.ids[0])
    await chats.until_told(chats.ids[0])
    assert len(chats.asked) == 2


async def test_what_is_deleted_meanwhile_does_not_come_back(chats: Chats) -> None:
    await chats.held_look_up()
    chats.changes.discard(chats.ids[0])
    chats.may_answer.set()
    await chats.until_told(chats.ids[1])


async def test_what_may_be_old_is_looked_up_again(chats: Chats) -> None:
    await chats.held_look_up()
    await chats.delete(chats.ids[0])  # with many others, of which no notice speaks one by one
    chats.changes.look_again()
    chats.may_answer.set()
    await chats.until_told(chats.ids[1])
    assert len(chats.asked) == 2


async def test_nothing_is_told_to_a_tab_that_has_gone(chats: Chats) -> None:
    chats.changes.add(chats.ids[0])
    chats.changes.close()
    await asyncio.sleep(0.05)
    assert chats.told == []
