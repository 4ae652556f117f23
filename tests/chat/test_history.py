"""Pages of conversations: everyone once, also where the list changes while it is read."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from chat import actions, answers, summaries, tree
from chat.actions import Draft
from chat.errors import BadCursor
from chat.history import PAGE_SIZE, conversation_page, plan_of
from chat.models import (
    Conversation,
    Generation,
    HistoryStrategy,
    Message,
    MessageStatus,
    Role,
    Summary,
)
from chat.rights import Rights
from chat.setup import Setup
from retrieval import documents
from retrieval.models import Collection
from tests.retrieval.conftest import Add, add, notes
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

__all__ = ["add", "notes"]


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


def test_the_first_prompt_of_a_chat_is_that_of_any(alice: "User") -> None:
    """It is made without looking the chat up, which has just been made."""
    with as_user(alice.pk):
        draft = Draft("c1", "Hello you", "vitrine-small", setup=Setup(system_prompt="Be kind."))
        send = partial(actions.send_message, Rights(alice), draft, lease_owner="me")
        sent, (asked,) = answers._with_plans(send)
        found = Conversation.objects.get(pk=sent.conversation.pk)
        assert asked.plan == plan_of(found, sent.message.pk)
        assert "Be kind." in asked.plan.system
        assert [exchange.question for exchange in asked.plan.exchanges] == ["Hello you"]


def test_a_repeated_send_finds_the_answers_in_their_order(alice: "User") -> None:
    alice.tier.concurrent_runs = 100
    alice.tier.tokens_per_day = None  # 32 answers at once may take more than that
    alice.tier.save()
    with as_user(alice.pk):
        for number in range(8):
            draft = Draft(f"c{number}", "Hello", "a", beside=("b", "c", "d"))
            for _ in range(2):
                sent = actions.send_message(Rights(alice), draft, lease_owner="me")
                assert [answer.model for answer in sent.answers] == ["a", "b", "c", "d"]


def test_a_summary_of_what_may_not_be_read_any_more_is_not_shown(
    alice: "User", notes: Collection, add: Add
) -> None:
    """A model made it of what documents had said."""
    document = add(notes, "The canary sings.")
    excerpt = {
        **{"number": 1, "document": str(document.pk), "version": str(document.live_version)},
        **{"collection": str(notes.pk), "name": "birds", "start": 0, "end": 0},
        **{"first_page": 1, "last_page": 1, "page_label": "", "context": "", "chunks": []},
    }
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice, history_strategy=HistoryStrategy.SUMMARY)
        row = None
        rows = []
        for n in range(4):
            for role in (Role.USER, Role.ASSISTANT):
                found = {"query": "", "excerpts": [excerpt], "is_whole": False}
                row = Message.objects.create(
                    conversation=chat,
                    parent=row,
                    role=role,
                    text=f"{role} {n}",
                    parts=[{"type": "text", "text": f"{role} {n}"}],
                    status=MessageStatus.COMPLETE,
                    found=found if (n, role) == (1, Role.ASSISTANT) else None,
                )
                rows.append(row)
        for until, text in ((rows[2], "before it"), (rows[4], "the canary sings")):
            Summary.objects.create(conversation=chat, until=until, text=text, model="m")

        def told() -> list[str]:
            return [one.text for one in plan_of(chat, rows[-1].pk).summaries]

        assert told() == ["before it", "the canary sings"]
        documents.delete(alice, document.pk)
        assert told() == ["before it"]


@pytest.mark.parametrize("kind", ["question", "answer", "replies"])
def test_no_summary_tells_what_was_deleted_while_it_was_written(alice: "User", kind: str) -> None:
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice, history_strategy=HistoryStrategy.SUMMARY)
        rows = long_chat(chat, 4)
        Generation.objects.create(conversation=chat, message=rows[-1], model="m")
        begun = summaries._read(rows[-1].pk)
        assert begun is not None
        early = rows[1 if kind == "answer" else 0]
        tree.delete(alice, early.pk, "d", with_replies=kind == "replies", version=None)
        assert not summaries._save(begun, 2, "It tells of all of them.")
        assert not Summary.objects.exists()
        tree.restore(alice, chat.pk, "d")
        assert summaries._save(begun, 2, "It tells of all of them.")
        assert Summary.objects.get().until_id == rows[4].pk
        assert not summaries._save(begun, 2, "There is one.")


def test_what_one_model_has_no_room_for_another_is_shown(alice: "User") -> None:
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice)
        rows = long_chat(chat, 4, model="small")
        told = {"before": str(rows[4].pk), "num_messages": 4, "summary": None}

        Message.objects.filter(pk=rows[-1].pk).update(left_out=told)
        later = long_chat(chat, 2, behind=rows[-1], model="large")
        for question in (later[0], later[2]):
            small, large = (
                plan_of(chat, question.pk, name).left_out for name in ("small", "large")
            )
            assert small is not None
            assert small.before == told["before"], "that is in its cache"
            assert large is None


def long_chat(
    chat: Conversation, num_exchanges: int, behind: Message | None = None, **of_answers: Any
) -> list[Message]:
    rows: list[Message] = []
    for number in range(num_exchanges):
        for role in (Role.USER, Role.ASSISTANT):
            text = f"{role} {number}"
            rows.append(
                Message.objects.create(
                    conversation=chat,
                    parent=rows[-1] if rows else behind,
                    role=role,
                    text=text,
                    parts=[{"type": "text", "text": text}],
                    **(of_answers if role == Role.ASSISTANT else {}),
                )
            )
    return rows
