"""Vectors of messages: who makes them, of which text, by which model, and what is left of them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from chat import message_embedder, message_vectors
from chat.delete_all import delete_portion
from chat.farewell import let_go
from chat.message_pieces import MAX_CHARS, pieces_of
from chat.models import Conversation, Message, MessageStatus, MessageVector, Role
from chat.waiting import Waits, waiting
from inference import BUILTIN_EMBEDDING, EngineError, TokenCounter
from retrieval.models import Collection, Document, EmbeddingModel, Version, VersionState
from retrieval.retiring import retire_some
from retrieval.vectors import embedding_model
from tests.chat.meanings import (
    COOKING,
    FLIGHT,
    LENTILS,
    Loop,
    found,
    num_vectors,
    num_waiting,
    some,
)
from tests.chat.test_search import chat
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


# --- what waits ---


def test_an_answer_waits_from_its_end_on(loop: Loop, alice: "User") -> None:
    with as_user(alice.pk):
        made = chat(alice, "Running")
        row = Message.objects.create(
            conversation=made, role=Role.ASSISTANT, status=MessageStatus.RUNNING, text=LENTILS
        )
    assert num_waiting() == 0
    with as_user(alice.pk):
        Message.objects.filter(pk=row.pk).update(status=MessageStatus.STOPPED)
        chat(alice, "Empty", "  \n ", "ok")
    assert num_waiting() == 2
    loop.embed()
    assert (num_waiting(), num_vectors()) == (0, 1)


def test_nothing_is_left_of_who_goes(loop: Loop, alice: "User", bob: "User") -> None:
    for user in (alice, bob):
        with as_user(user.pk):
            chat(user, "Dinner", LENTILS)
            chat(user, "Dinner again", f"{LENTILS} And again.")
    loop.embed()
    assert num_vectors(owner=alice) == num_vectors(owner=bob) == 2
    with as_user(alice.pk):
        delete_portion(alice)
    assert num_vectors(owner=alice) == 0
    with as_user(bob.pk):
        let_go(bob)
        chat(bob, "Late", LENTILS)
        bob.delete()
    with as_system():
        assert not MessageVector.objects.exists()


# --- one model after another ----------------------------------------------------------------------


def test_another_model_takes_over(loop: Loop, alice: "User", cooking: Conversation) -> None:
    before = num_vectors()
    with as_system():
        EmbeddingModel.objects.update(name="another", dimensions=384)
    assert found(loop, alice, COOKING) == [], "not by the vectors of another model"
    loop.embed()
    assert found(loop, alice, COOKING) == ["Dinner"]
    assert num_vectors(model__name="another") == 0
    assert num_vectors(model__name=BUILTIN_EMBEDDING) == before


def test_a_model_goes_when_no_message_has_vectors_of_it(
    loop: Loop, alice: "User", cooking: Conversation
) -> None:
    with as_system():
        EmbeddingModel.objects.update(name="another", dimensions=384)
        before = num_vectors(model__name="another")
        new = embedding_model(BUILTIN_EMBEDDING, 384, "new")
        assert not retire_some(new)
        assert num_vectors(model__name="another") == before > 0
    loop.embed()
    with as_system():
        assert retire_some(new)
        assert not EmbeddingModel.objects.filter(name="another").exists()
    assert found(loop, alice, COOKING) == ["Dinner"]


def test_another_revision_is_another_model(
    loop: Loop, alice: "User", cooking: Conversation
) -> None:
    with as_system():
        EmbeddingModel.objects.update(revision="older")
    assert found(loop, alice, COOKING) == []
    loop.embed()
    assert found(loop, alice, COOKING) == ["Dinner"]
    assert num_vectors(model__revision="older") == 0


def test_switched_off(loop: Loop, alice: "User", cooking: Conversation) -> None:
    with override_settings(CHAT_MEANING=False):
        assert found(loop, alice, COOKING) == []
        loop.embed()
        assert num_vectors() == 0
        loop.embed()
        assert num_vectors() == 0
    loop.embed()
    assert found(loop, alice, COOKING) == ["Dinner"]


# --- processes that die, and texts that change ---


def claimed(limit: int = 10) -> list[message_vectors.Waiting]:
    with as_system():
        return message_vectors.claim(limit)


def run_out() -> None:
    with as_system():
        MessageVector.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def test_two_processes_take_up_different_messages(alice: "User", loop: Loop) -> None:
    some(alice, 40)

    def take(_: int) -> list[int]:
        try:
            return [one.row for one in claimed(4)]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        batches = list(pool.map(take, range(12)))
    rows = [row for batch in batches for row in batch]
    assert len(rows) == len(set(rows)) == 40
    loop.embed()
    assert (num_waiting(), num_vectors()) == (40, 0), "others work on them"
    run_out()
    loop.embed()
    assert (num_waiting(), num_vectors()) == (0, 40)


def test_who_comes_late_writes_nothing_twice(alice: "User", loop: Loop) -> None:
    some(alice, 3)
    late = claimed()
    run_out()
    loop.embed()
    with_vectors(late)
    keep(late)
    assert (num_waiting(), num_vectors()) == (0, 3)


def with_vectors(batch: list[message_vectors.Waiting]) -> None:
    counter = TokenCounter.load(django_settings.ENGINE, BUILTIN_EMBEDDING)
    for one in batch:
        one.pieces = pieces_of(one.text, counter, 256)
        one.vectors = [[1.0] + [0.0] * 383 for _ in one.pieces]


def keep(batch: list[message_vectors.Waiting]) -> None:
    with as_system():
        message_vectors.keep(batch, message_vectors.model_of("tiny", 384, "1"))


def test_a_text_that_changed_meanwhile_keeps_none_of_the_old_ones_vectors(alice: "User") -> None:
    some(alice, 3)
    batch = claimed()
    with_vectors(batch)
    with as_user(alice.pk):
        Message.objects.filter(conversation__title="c0").update(text=FLIGHT)
        Message.objects.filter(conversation__title="c1").delete()
    keep(batch)
    assert (num_waiting(), num_vectors()) == (1, 1)
    assert [one.text for one in claimed()] == [FLIGHT]


def test_a_text_that_is_changed_at_the_same_moment(alice: "User") -> None:
    """Who changes it waits for who keeps vectors, or the other way round: then these are left."""
    some(alice, 1)
    batch = claimed()
    with_vectors(batch)
    with as_user(alice.pk), transaction.atomic():
        Message.objects.update(text=FLIGHT)
        in_another_thread(lambda: keep(batch))
        assert num_vectors() == 0
    assert (num_waiting(), num_vectors()) == (1, 0)
    batch = claimed()
    with_vectors(batch)
    with ThreadPoolExecutor(1) as pool:
        with as_system(), transaction.atomic():
            message_vectors.keep(batch, message_vectors.model_of("tiny", 384, "1"))
            change = pool.submit(change_text, alice.pk, LENTILS)
            with pytest.raises(TimeoutError):
                change.result(0.3)
        change.result(10)
    assert (num_waiting(), num_vectors()) == (1, 0)


def change_text(owner: int, text: str) -> None:
    try:
        with as_user(owner):
            Message.objects.update(text=text)
    finally:
        connection.close()


def in_another_thread(work: Callable[[], None]) -> None:
    def done() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(done).result(10)


def test_what_takes_the_engine_down_takes_no_other_message_along(
    alice: "User", loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    some(alice, 5)
    with as_user(alice.pk):
        chat(alice, "poison", "A text that kills whoever dares to read what it says.")
    real = message_embedder.embed

    async def deadly(model: str, texts: Any, *given: Any) -> Any:
        if any("kills" in text for text in texts):
            raise EngineError("The worker died.")
        return await real(model, texts, *given)

    monkeypatch.setattr(message_embedder, "embed", deadly)
    for _ in range(9):
        loop.embed()
    assert (num_waiting(), num_vectors()) == (1, 5)
    assert claimed() == [], "it is given up"


def test_documents_come_first(alice: "User", loop: Loop) -> None:
    with as_system():
        notes = Collection.objects.create(owner=alice, name="Notes")
        document = Document.objects.create(collection=notes, name="birds.md")
        version = Version.objects.create(
            document=document,
            collection=notes,
            state=VersionState.EMBEDDING,
            lease_until=timezone.now(),
        )
    some(alice, 1)
    loop.embed()
    assert num_waiting() == 1
    with as_system():
        assert waiting() == {Waits.DOCUMENTS, Waits.MESSAGES}
        Version.objects.filter(pk=version.pk).update(state=VersionState.READY)
        assert waiting() == {Waits.MESSAGES}
    loop.embed()
    assert num_waiting() == 0
    with as_system():
        assert waiting() == set()


# --- pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        LENTILS * 40,
        "word" * 20_000,
        "漢字仮名交じり文。" * 3_000,
        "a|-" * 20_000,
        " " * 50_000 + "|-\n" + " " * 50_000,
        ("- one\r\n- two\r\n\r\n" * 500),
        "🎉👩‍🚀" * 4_000,
        "\n".join(f"line {n} without any end" for n in range(2_000)),
    ],
)
def test_pieces_are_spans_that_the_model_reads_whole(text: str) -> None:
    counter = TokenCounter.load(django_settings.ENGINE, BUILTIN_EMBEDDING)
    made = pieces_of(text, counter, counter.window_tokens)
    read = text[:MAX_CHARS]
    covered = [False] * len(read)
    for piece in made:
        assert piece.text == text[piece.start : piece.end]
        assert counter(piece.text) <= counter.window_tokens
        covered[piece.start : piece.end] = [True] * (piece.end - piece.start)
    left = "".join(c for c, is_in in zip(read, covered, strict=True) if not is_in)
    assert not made or not left.strip()
