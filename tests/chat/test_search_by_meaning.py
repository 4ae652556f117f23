"""Chats that are found by what they mean: the owner's alone, as they are now, and without a wait."""

import asyncio
from datetime import UTC
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings
from django.utils import timezone
from pgvector import HalfVector

from chat import library, message_vectors, tree
from chat.engine import engine
from chat.models import Conversation, Message, MessageVector, Role
from chat.search_by_meaning import search
from chat.search_query import parse
from inference import BUILTIN_EMBEDDING, Caller
from tests.chat.meanings import (
    COOKING,
    FLIGHT,
    LENTILS,
    PLANE,
    RECIPE,
    Loop,
    found,
    num_vectors,
    num_waiting,
    some,
)
from tests.chat.test_search import chat
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


# --- what is found --------------------------------------------------------------------------------


def test_a_chat_is_found_by_other_words_than_its_own(
    loop: Loop, alice: "User", cooking: Conversation
) -> None:
    [hit] = loop.hits(alice, COOKING)
    with as_user(alice.pk):
        answer = Message.objects.get(text=LENTILS)
    assert (hit.conversation_id, hit.message_id) == (cooking.pk, answer.pk)
    assert (hit.role, hit.text, hit.num_matches) == ("assistant", LENTILS, 1)
    assert hit.cosine is not None
    assert 0.4 <= hit.cosine < 1
    assert found(loop, alice, PLANE) == ["Travel"]


@pytest.mark.parametrize(
    "query", ["asdf", "blorf snarg wibble", "zzzz", "qwerty uiop", "1234567", "???", "", "-nothing"]
)
def test_nonsense_finds_nothing(
    loop: Loop, alice: "User", cooking: Conversation, query: str
) -> None:
    assert loop.hits(alice, query) == []


def test_what_words_find_is_not_found_again(
    loop: Loop, alice: "User", cooking: Conversation
) -> None:
    with as_user(alice.pk):
        chat(alice, "Both", "Tell me how to cook legumes, and which kind of pot to take.")
    loop.embed()
    assert found(loop, alice, COOKING) == ["Dinner"]
    assert "Both" in found(loop, alice, "preparing beans and other legumes")


def test_who_asks_for_words_gets_words(loop: Loop, alice: "User", cooking: Conversation) -> None:
    assert found(loop, alice, f'"{COOKING}"') == []
    assert found(loop, alice, f"{COOKING} -lentils") == []


def test_filters_hold(loop: Loop, alice: "User", cooking: Conversation) -> None:
    with as_user(alice.pk):
        library.change(alice, cooking.pk, {"tags": ["food"]}, None)
    assert found(loop, alice, f"{COOKING} tag:food") == ["Dinner"]
    assert found(loop, alice, f"{COOKING} tag:other") == []
    assert found(loop, alice, f"{COOKING} before:2020") == []
    assert found(loop, alice, f"{COOKING} after:2020 archived:no") == ["Dinner"]


def test_the_best_piece_of_a_long_message_counts(loop: Loop, alice: "User") -> None:
    filler = " ".join(f"Clause {n} of this contract deals with fees and terms." for n in range(150))
    text = f"{filler}\n\n{RECIPE}\n\n{filler}"
    with as_user(alice.pk):
        made = chat(alice, "Contract", text)
    loop.embed()
    [hit] = loop.hits(alice, COOKING)
    assert hit.conversation_id == made.pk
    assert "lentils" in hit.text
    assert hit.text in text
    assert len(hit.text) < 1_500
    assert num_vectors() > 10


def test_other_branches_are_found(loop: Loop, alice: "User") -> None:
    with as_user(alice.pk):
        made = Conversation.objects.create(owner=alice, title="Branches")
        root = Message.objects.create(conversation=made, role=Role.USER, text="What to do?")
        for text, chosen in ((LENTILS, 0), ("Go out and have a long walk in the woods.", 1)):
            Message.objects.create(
                conversation=made, parent=root, role=Role.ASSISTANT, text=text, chosen=chosen
            )
    loop.embed()
    assert [hit.text for hit in loop.hits(alice, COOKING)] == [LENTILS]


# --- whose it is ----------------------------------------------------------------------------------


def test_charlie_finds_nothing_of_alice(
    loop: Loop, alice: "User", charlie: "User", cooking: Conversation
) -> None:
    with as_user(charlie.pk):
        chat(charlie, "Own", "My landlord wants to keep the deposit for a scratch on the floor.")
    loop.embed()
    assert found(loop, charlie, COOKING) == []
    with as_user(charlie.pk):  # a mistaken owner does not help either
        query = parse(COOKING, UTC)
        assert loop.run(search(alice, query, Caller())) == []
        assert not MessageVector.objects.filter(owner=alice).exists()
        assert not MessageVector.objects.filter(conversation=cooking).exists()
        assert MessageVector.objects.filter(owner=alice).delete()[0] == 0
    with as_nobody():
        assert not MessageVector.objects.exists()
    assert found(loop, alice, COOKING) == ["Dinner"]


def test_what_is_deleted_is_gone_at_once(loop: Loop, alice: "User", cooking: Conversation) -> None:
    with as_user(alice.pk):
        answer = Message.objects.get(text=LENTILS)
        tree.delete(alice, answer.pk, "now", with_replies=True, version=None)
        assert not MessageVector.objects.filter(message=answer).exists()
    assert found(loop, alice, COOKING) == []
    with as_user(alice.pk):
        tree.restore(alice, cooking.pk, "now")
    loop.embed()
    assert found(loop, alice, COOKING) == ["Dinner"]
    with as_user(alice.pk):
        library.change(alice, cooking.pk, {"deleted": True}, None)
    assert found(loop, alice, COOKING) == []
    with as_system():
        library.purge(timezone.now())
    assert num_vectors(conversation=cooking) == 0
    assert num_vectors() > 0


def test_another_text_drops_the_vectors_of_the_one_before(
    loop: Loop, alice: "User", cooking: Conversation
) -> None:
    with as_user(alice.pk):
        Message.objects.filter(text=LENTILS).update(text=FLIGHT)
    assert found(loop, alice, COOKING) == []
    loop.embed()
    assert sorted(found(loop, alice, PLANE)) == ["Dinner", "Travel"]


# --- what may be away ----------------------------------------------------------------------------


def test_without_the_model_words_alone_answer(
    loop: Loop, alice: "User", cooking: Conversation
) -> None:
    with override_settings(EMBEDDING_MODEL="gone"):
        assert found(loop, alice, COOKING) == []
        loop.embed()
    assert num_waiting() == 0
    assert found(loop, alice, COOKING) == ["Dinner"]


def test_a_busy_engine_is_not_waited_for(
    loop: Loop, alice: "User", cooking: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*given: Any, **more: Any) -> Any:
        await asyncio.sleep(60)

    monkeypatch.setattr("chat.search_by_meaning.embed", slow)
    began_s = monotonic()
    assert found(loop, alice, COOKING) == []
    assert monotonic() - began_s < 1.5


def test_a_model_that_sleeps_is_woken_and_not_waited_for(
    loop: Loop, alice: "User", bob: "User", cooking: Conversation
) -> None:
    loop.run(engine().unload(BUILTIN_EMBEDDING))
    assert found(loop, bob, COOKING) == []
    assert engine().state(BUILTIN_EMBEDDING).state == "cold", (
        "there is nothing of Bob's to be found"
    )
    began_s = monotonic()
    assert found(loop, alice, COOKING) == []
    assert monotonic() - began_s < 1
    assert engine().state(BUILTIN_EMBEDDING).state == "loading"
    loop.load()
    assert found(loop, alice, COOKING) == ["Dinner"]


def test_no_other_model_leaves_memory_for_messages(
    loop: Loop, alice: "User", cooking: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.run(engine().unload(BUILTIN_EMBEDDING))
    monkeypatch.setattr(engine()._placement.host.residency._ledger, "_measure", lambda: 2**20)
    some(alice, 1)
    assert found(loop, alice, COOKING) == []
    loop.embed()
    assert engine().state(BUILTIN_EMBEDDING).state == "cold"
    assert num_waiting() == 1
    monkeypatch.undo()
    loop.embed()
    assert num_waiting() == 0


def test_vectors_of_one_length_only_are_compared(loop: Loop, alice: "User") -> None:
    """Those of a model of other dimensions lie in the same table, and are not touched."""
    some(alice, 1)
    loop.embed()
    with as_system():
        [row] = MessageVector.objects.all()
        other = message_vectors.model_of("short", 3, "1")
        row.pk, row.model, row.vector = None, other, HalfVector([1.0, 0.0, 0.0])
        row.save(force_insert=True)
    assert found(loop, alice, COOKING) == ["c0"]
