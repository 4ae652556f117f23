"""Answers that were given before: to the same question, of the same rights, from the same documents."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from chat import answer_cache
from chat.answer_cache import Asked, Hit, _marks
from chat.cache_scope import CacheScope
from chat.models import CachedAnswer
from inference import Caller
from tests.chat.reader import Frame, Reader, a_reader
from tests.chat.test_answers_from_documents import BUILTIN, HANDBOOK, bring
from tests.chat.test_documents import a_collection, ready, upload
from tests.sites import Site

QUESTION = "When does the office open?"


@pytest.fixture
def alice(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "alice")


@pytest.fixture
def bob(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "bob")


def ask(reader: Reader, text: str, **fields: Any) -> Frame:
    accepted = reader.send(text, model=BUILTIN, **fields)
    reader.hear_end(accepted["run"])
    return reader.saved(accepted)


def a_cached_collection(reader: Reader) -> str:
    collection = a_collection(reader.client)
    bring(reader, collection, HANDBOOK, "handbook.md")
    changed = reader.client.patch(f"/api/collections/{collection}", json={"caches_answers": True})
    assert changed.json()["caches_answers"]
    return collection


def test_readers_of_a_collection_share_answers_and_nobody_else(alice: Reader, bob: Reader) -> None:
    collection = a_cached_collection(alice)
    sources = {"collections": [collection]}
    first = ask(alice, QUESTION, sources=sources)
    assert first["from_cache"] is None
    again = ask(alice, f"  {QUESTION.replace(' ', '  ')} ", sources=sources)
    assert again["from_cache"]["similarity"] == 1
    assert again["from_cache"]["question"] == QUESTION
    assert (again["text"], again["found"]) == (first["text"], first["found"])
    assert again["usage"]["completion_tokens"] == 0
    accesses = f"/api/collections/{collection}/accesses"
    access = alice.client.post(accesses, json={"email": bob.email}).json()["id"]
    # Sharing counts as a change: what is found may be read by others now.
    theirs = ask(bob, QUESTION, sources=sources)
    assert theirs["from_cache"] is None
    assert ask(alice, QUESTION, sources=sources)["from_cache"]["question"] == "", (
        "how Bob has put it"
    )
    alice.client.delete(f"{accesses}/{access}")
    bob.say({"type": "message.send", "client_id": "no", "text": QUESTION, "sources": sources})
    assert bob.hear_until(type="error")["code"] == "not_found"


def test_what_means_the_same_is_found_and_what_does_not_is_not(alice: Reader) -> None:
    sources = {"collections": [a_cached_collection(alice)]}
    ask(alice, "When does the office open in the morning?", sources=sources)
    same = ask(alice, "When does the office open in the morning, please?", sources=sources)
    assert 0.95 <= same["from_cache"]["similarity"] < 1
    for other in (
        "When does the office not open in the morning?",
        "When does the office 7 open in the morning?",
        "Where is lunch served?",
    ):
        assert ask(alice, other, sources=sources)["from_cache"] is None, other


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ("Why does the lamp work?", "Why doesn't the lamp work?"),
        ("Why does the lamp work?", "Why doesn\u2019t the lamp work?"),
        ("Which plants can cats eat?", "Which plants cannot cats eat?"),
        ("Welche Pflanzen fressen Katzen?", "Welche Pflanzen fressen Katzen nie?"),
        ("图书馆什么时候开门?", "图书馆什么时候不开门?"),
        ("猫は何を食べる?", "猫は何を食べない?"),
        ("From 3 to 5, how many?", "From 5 to 3, how many?"),
        ("What does IT cost us?", "What does it cost us?"),
        ("What does it cost us?", "What does it cost US?"),
    ],
)
def test_a_question_that_says_the_contrary_is_another_one(asked: str, other: str) -> None:
    assert _marks(asked) != _marks(other)


def test_words_that_begin_like_a_no_say_none() -> None:
    assert _marks("Where is the north notebook now?") == _marks("Where is the notebook?")


def test_letters_of_another_case_are_another_question() -> None:
    def key(question: str) -> str:
        return Asked(CacheScope(1, None), question, "").key

    assert key("What does IT cost?") != key("What does it cost?")
    assert key("What  does it cost? ") == key("What does it cost?")


def test_long_questions_are_not_found_by_their_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that begin alike a model of vectors reads the same: the beginning."""
    monkeypatch.setattr(answer_cache, "_exact", lambda asked: None)
    monkeypatch.setattr(answer_cache, "_near", lambda asked: Hit(CachedAnswer(), 0.99))

    async def meanings(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(answer_cache, "meanings_of", meanings)

    def found(question: str) -> bool:
        asked = Asked(CacheScope(1, None), question, "")
        return asyncio.run(answer_cache.find(asked, Caller("1")))[0] is not None

    assert found("Give the text in French.")
    assert not found(f"{'The harbour handled coal. ' * 50} Give the text in French.")


def test_a_changed_document_drops_what_was_answered_from_it(alice: Reader, chat_site: Site) -> None:
    collection = a_cached_collection(alice)
    sources = {"collections": [collection]}
    ask(alice, QUESTION, sources=sources)
    assert ask(alice, QUESTION, sources=sources)["from_cache"]
    changed = upload(alice.client, collection, HANDBOOK.replace("at 8", "at 9"), "handbook.md")
    ready(alice.client, changed.json()["id"])
    answer = ask(alice, QUESTION, sources=sources)
    assert answer["from_cache"] is None
    assert "at 9" in answer["text"]


@pytest.mark.parametrize("change", ["unshare", "delete"])
def test_nothing_is_left_of_answers_from_what_may_not_be_read_any_more(
    alice: Reader, bob: Reader, database: psycopg.Connection[Any], change: str
) -> None:
    """Bob has kept them for himself, where Alice's scope sees nothing."""
    collection = a_collection(alice.client)
    bring(alice, collection, HANDBOOK, "handbook.md")
    accesses = f"/api/collections/{collection}/accesses"
    access = alice.client.post(accesses, json={"email": bob.email}).json()["id"]
    bob.client.patch("/api/personalisation", json={"caches_answers": True})
    ask(bob, QUESTION, sources={"collections": [collection]})

    def kept() -> Any:
        sql = "SELECT count(*) FROM chat_cachedanswer WHERE collections @> ARRAY[%s::uuid]"
        return database.execute(sql, [collection]).fetchone()

    assert kept() == (1,)
    path = f"{accesses}/{access}" if change == "unshare" else f"/api/collections/{collection}"
    assert alice.client.delete(path).status_code == 204
    assert kept() == (0,)


def test_who_may_fill_less_of_the_context_has_an_answer_of_their_own(
    chat_site: Site, alice: Reader
) -> None:
    sources = {"collections": [a_cached_collection(alice)]}
    ask(alice, QUESTION, sources=sources)
    assert ask(alice, QUESTION, sources=sources)["from_cache"] is not None
    chat_site.execute(
        "INSERT INTO webapp_tier SELECT (jsonb_populate_record(tier,"
        " jsonb_build_object('slug', 'narrow', 'context_tokens', 900))).*"
        " FROM webapp_tier tier WHERE slug = 'free'"
    )
    chat_site.execute("UPDATE webapp_user SET tier_id = 'narrow' WHERE email = %s", alice.email)
    assert ask(alice, QUESTION, sources=sources)["from_cache"] is None
    assert ask(alice, QUESTION, sources=sources)["from_cache"] is not None


def test_another_prompt_another_model_and_another_take_are_answered_anew(alice: Reader) -> None:
    sources = {"collections": [a_cached_collection(alice)]}
    first = ask(alice, QUESTION, sources=sources)
    assert ask(alice, QUESTION, sources=sources, system_prompt="Be brief.")["from_cache"] is None
    cached = ask(alice, QUESTION, sources=sources)
    assert cached["from_cache"]
    alice.say({"type": "answer.regenerate", "client_id": "anew", "answer": cached["id"]})
    again = alice.hear_until(type="answer.accepted")
    alice.hear_end(again["run"])
    kinds = [event["kind"] for event in alice.events(again["run"])]
    assert "from_cache" not in kinds
    assert alice.text(again["run"]) == first["text"]


def test_a_chat_of_ones_own_is_cached_only_where_one_wants_it(alice: Reader, bob: Reader) -> None:
    question = "Hello, who are you?"
    ask(alice, question)
    assert ask(alice, question)["from_cache"] is None
    alice.client.patch("/api/personalisation", json={"caches_answers": True})
    ask(alice, question)
    assert ask(alice, question)["from_cache"]
    bob.client.patch("/api/personalisation", json={"caches_answers": True})
    assert ask(bob, question)["from_cache"] is None, "that was Alice's"


def test_what_a_tool_has_said_is_not_kept(alice: Reader) -> None:
    alice.client.patch("/api/personalisation", json={"caches_answers": True})
    question = "What is 17 * 23?"
    first = ask(alice, question)
    assert any(part["type"] == "tool_call" for part in first["parts"])
    assert ask(alice, question)["from_cache"] is None
