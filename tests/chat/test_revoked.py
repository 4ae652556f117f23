"""What may not be read any more: answers end, and prompts that hold it are forgotten."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat import answer_cache, answers, revoked
from chat.answer_cache import Asked as AskedBefore
from chat.asking import AnswerRequest
from chat.cache_scope import CacheScope
from chat.models import CachedAnswer, Conversation, Generation, GenerationTurn, Message, Role
from chat.prompt_plan import PromptPlan
from chat.runs import Run
from chat.spans import Clock, Trace
from retrieval import documents
from retrieval.models import Access, Collection, Document
from tests.chat.reader import Reader
from tests.chat.test_answers_from_documents import alice as alices_tab
from tests.chat.test_answers_from_documents import bob as bobs_tab
from tests.chat.test_answers_from_documents import bring
from tests.chat.test_documents import a_collection
from tests.plans import num_looked_at
from tests.retrieval.conftest import Add, add, notes
from tests.sites import Site
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

__all__ = ["add", "alices_tab", "bobs_tab", "notes"]
SECRET = "The secret word of the canary is xylophonist."


@pytest.mark.parametrize("change", ["unshare", "delete"])
def test_an_answer_ends_that_is_being_written_from_it(
    alices_tab: Reader, bobs_tab: Reader, change: str
) -> None:
    collection = a_collection(alices_tab.client)
    document = bring(alices_tab, collection, SECRET, "secret.txt")
    accesses = f"/api/collections/{collection}/accesses"
    access = alices_tab.client.post(accesses, json={"email": bobs_tab.email}).json()["id"]
    question = "What is the secret word of the canary?"
    run = bobs_tab.send(question, model="endless", sources={"collections": [collection]})["run"]
    bobs_tab.hear_text(run, 5)
    path = f"{accesses}/{access}" if change == "unshare" else f"/api/documents/{document}"
    assert alices_tab.client.delete(path).status_code == 204
    began_s = time.monotonic()
    assert bobs_tab.hear_end(run)["kind"] == "stopped"
    assert time.monotonic() - began_s < 5


def test_an_answer_goes_on_whose_documents_stay(alices_tab: Reader, chat_site: Site) -> None:
    collection = a_collection(alices_tab.client)
    bring(alices_tab, collection, SECRET, "secret.txt")
    other = bring(alices_tab, a_collection(alices_tab.client), SECRET, "other.txt")
    question = "What is the secret word of the canary?"
    run = alices_tab.send(question, model="endless", sources={"collections": [collection]})["run"]
    alices_tab.hear_text(run, 5)
    assert alices_tab.client.delete(f"/api/documents/{other}").status_code == 204
    assert alices_tab.hear_end(run)["kind"] == "finished"


# --- prompts that are kept ------------------------------------------------------------------------

Asked = Callable[..., GenerationTurn]


@pytest.fixture
def asked(bob: "User") -> Asked:
    """An answer of Bob's from a document, behind others of the same chat."""

    def asked(document: Document | None, chat: Conversation) -> GenerationTurn:
        last = chat.messages.order_by("-created_at").first()
        question = Message.objects.create(conversation=chat, parent=last, role=Role.USER, text="?")
        excerpt = {"version": str(document.live_version)} if document else {}
        found = {"query": "?", "excerpts": [excerpt], "is_whole": False} if document else None
        answer = Message.objects.create(
            conversation=chat, parent=question, role=Role.ASSISTANT, text="!", found=found
        )
        generation = Generation.objects.create(conversation=chat, message=answer, model="m")
        return GenerationTurn.objects.create(
            generation=generation, index=0, prompt_ids=[1, 2, 3], output_ids=[4]
        )

    return asked


def prompt_of(turn: GenerationTurn) -> Any:
    turn.refresh_from_db()
    return turn.prompt_ids


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["person", "group", "everybody", "deleted"])
def test_prompts_are_forgotten_when_a_right_ends(
    alice: "User", bob: "User", notes: Collection, add: Add, asked: Asked, way: str
) -> None:
    secret, kept = add(notes, SECRET), add(notes, "This one stays.")
    with as_user(bob.pk):
        own = Collection.objects.create(owner=bob, name="Own")
    his = add(own, "His own notes.")
    with as_system():
        group = Group.objects.create(name="Keepers")
        bob.groups.add(group)
        whom = {"person": {"user": bob}, "group": {"group": group}}.get(way, {})
        access = Access.objects.create(collection=notes, owner=alice, **whom)
    with as_user(bob.pk):
        chat, other = (Conversation.objects.create(owner=bob) for _ in range(2))
        before = asked(None, chat)
        turns = [asked(secret, chat), asked(None, chat)]
        elsewhere = [asked(his, other), *([asked(kept, other)] if way == "deleted" else [])]
    with as_system():
        assert revoked.forget_prompts() == 0
        if way == "group":
            bob.groups.remove(group)
        elif way == "deleted":
            secret.delete()
        else:
            access.delete()
        assert revoked.forget_prompts() == 2
        assert [prompt_of(turn) for turn in turns] == [[], []]
        assert [prompt_of(turn) for turn in (before, *elsewhere)] == [[1, 2, 3]] * (
            1 + len(elsewhere)
        )
        assert [turn.output_ids for turn in turns] == [[4], [4]]
        assert revoked.forget_prompts() == 0


@pytest.mark.django_db(transaction=True)
def test_prompts_of_others_are_forgotten_whatever_somebody_has(
    alice: "User", bob: "User", charlie: "User", notes: Collection, add: Add, asked: Asked
) -> None:
    """Bob's place among them is in no order."""
    secret = add(notes, SECRET)
    with as_system():
        access = Access.objects.create(collection=notes, owner=alice, user=bob)
        for owner in (alice, charlie):
            chat = Conversation.objects.create(owner=owner)
            found = {"query": "?", "excerpts": [{"version": "none"}], "is_whole": False}
            Message.objects.create(conversation=chat, role=Role.ASSISTANT, text="!", found=found)
    with as_user(bob.pk):
        turn = asked(secret, Conversation.objects.create(owner=bob))
    with as_system():
        access.delete()
        assert revoked.forget_prompts() == 1
        assert prompt_of(turn) == []


@pytest.mark.django_db(transaction=True)
def test_of_nobody_are_the_messages_of_others_looked_at(
    alice: "User", bob: "User", notes: Collection, add: Add, asked: Asked
) -> None:
    """Or it would take the square of what a site has."""
    secret = add(notes, SECRET)
    found = {"query": "?", "excerpts": [{"version": str(secret.live_version)}], "is_whole": False}
    with as_system():
        chats = [Conversation(owner=alice) for _ in range(100)]
        Conversation.objects.bulk_create(chats)
        Message.objects.bulk_create(
            Message(conversation=chat, role=Role.ASSISTANT, text="!", found=found)
            for chat in chats
            for _ in range(20)
        )
        asked(secret, Conversation.objects.create(owner=bob))
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE chat_conversation, chat_message")
    with as_user(bob.pk):
        for sql, values in ((revoked._NAMED, []), (revoked._FORGET, [[secret.live_version]])):
            assert num_looked_at(sql, [bob.pk, *values], "chat_message") < 10


@pytest.mark.django_db(transaction=True)
def test_what_may_be_read_is_asked_once_for_all_messages(
    bob: "User", notes: Collection, add: Add, asked: Asked
) -> None:
    """Postgres would look through all versions of the site for each message."""
    document = add(notes, SECRET)
    with as_user(bob.pk):
        chat = Conversation.objects.create(owner=bob)
        turns = [asked(document, chat) for _ in range(5)]
    with as_system(), CaptureQueriesContext(connection) as queries:
        assert revoked.forget_prompts() == 5
    with as_system():
        assert [prompt_of(turn) for turn in turns] == [[]] * 5
    of_versions = [query for query in queries if "retrieval_version" in query["sql"]]
    assert len(of_versions) == 1
    assert "chat_message" not in of_versions[0]["sql"]


@pytest.mark.django_db(transaction=True)
def test_what_goes_while_a_prompt_is_made_ends_the_answer(
    alice: "User",
    bob: "User",
    notes: Collection,
    add: Add,
    asked: Asked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The prompt holds it, and by the time that the answer begins it may not be read any more."""
    secret = add(notes, SECRET)
    with as_system():
        access = Access.objects.create(collection=notes, owner=alice, user=bob)

    def plan_on(*_: Any) -> PromptPlan:
        with as_system():
            access.delete()
        return PromptPlan(exchanges=())

    monkeypatch.setattr(answers.history, "plan_on", plan_on)
    with as_user(bob.pk):
        chat = Conversation.objects.create(owner=bob)
        asked(secret, chat)
        generation = asked(None, chat).generation
        begun = answers._asked_of(chat, generation)
        assert begun.reads == {str(secret.live_version)}
        run = Run(
            generation.pk,
            conversation_id=chat.pk,
            message_id=generation.message_id,
            user_id=bob.pk,
            trace=Trace(Clock(), "trace"),
        )
        request = AnswerRequest("run", "m", [], user=str(bob.pk), reads=begun.reads)
        asyncio.run(run._note_reads(request))
        assert run._reads == begun.reads, "which it looks at while it is written"


# --- answers that are kept ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_no_answer_is_kept_from_what_has_gone_since(
    alice: "User", notes: Collection, add: Add
) -> None:
    """It ends in the moment before it would have been stopped."""
    secret = add(notes, SECRET)
    add(notes, "This one stays.")

    def keep(version: int) -> None:
        scope = CacheScope(alice.pk, notes.pk, ((str(notes.pk), version),))
        answer_cache._keep(AskedBefore(scope, "What is it?", "context"), "!", None, "m", "")

    with as_user(alice.pk):
        notes.refresh_from_db()
        documents.delete(alice, secret.pk)
        keep(notes.version)
        assert not CachedAnswer.objects.exists()
        notes.refresh_from_db()
        keep(notes.version)
        assert CachedAnswer.objects.count() == 1
