"""Questions that are put by themselves by a model before documents are searched, within bounds."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from chat.models import Message
from chat.rewriting import is_faithful
from chat.sources import Picked, Sources, sources_along
from tests.chat.policies import PHRASE, plant_rule, set_policy
from tests.chat.reader import Reader
from tests.chat.test_answers_from_documents import HANDBOOK, PORT, ask, bring
from tests.chat.test_documents import a_collection
from tests.sites import Site, SiteMaker
from tests.upstream_server import Answer, UpstreamServer, events, status, texts

FIRST, SECOND = "When does the office open?", "And where is lunch served in it?"
BY_ITSELF = "Where is lunch served in the office?"
QUESTION_S = 1.0


@pytest.fixture(scope="module")
def writer() -> Iterator[UpstreamServer]:
    with UpstreamServer() as server:
        yield server


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, writer: UpstreamServer) -> Iterator[Site]:
    models = f"writer={writer.url}"
    with make_site(
        VITRINE_MODELS=models,
        VITRINE_DEFAULT_MODEL="vitrine-small",
        VITRINE_QUESTION_MODEL="writer",
        VITRINE_QUESTION_S=str(QUESTION_S),
        VITRINE_MODERATION="builtin",
    ) as site:
        site.set_up().close()
        set_policy(site, {})
        yield site


@pytest.fixture
def alice(site: Site, writer: UpstreamServer) -> Iterator[Reader]:
    writer.asked.clear()
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        reader.client.get("/")
        reader.client.headers["X-CSRFToken"] = reader.client.cookies["vitrine_csrf"]
        yield reader


def two_turns(reader: Reader) -> dict[str, Any]:
    """The answer to the second of two questions."""
    collection = a_collection(reader.client)
    bring(reader, collection, HANDBOOK, "handbook.md")
    bring(reader, collection, PORT, "port.txt")
    sources = {"collections": [collection]}
    accepted, first = ask(reader, FIRST, sources=sources)
    place = {"conversation": accepted["conversation"]["id"], "parent": first["id"]}
    return ask(reader, SECOND, sources=sources, **place)[1]


def test_a_question_is_looked_for_as_it_is_meant(alice: Reader, writer: UpstreamServer) -> None:
    writer.answers = [events(*texts(BY_ITSELF))]
    answer = two_turns(alice)
    assert answer["found"]["query"] == BY_ITSELF
    (asked,) = writer.asked  # not for the first question
    said = asked.body["messages"][-1]["content"]
    assert FIRST in said
    assert SECOND in said
    assert "opens at 8 in the morning" in said, "what was answered"
    assert PORT not in str(asked.body), "no document is shown to it"


def slowly(answer: Answer) -> Answer:
    def late(handler: Any) -> None:
        time.sleep(3 * QUESTION_S)
        answer(handler)

    return late


@pytest.mark.parametrize(
    "written",
    [
        status(500),
        events(*texts("Lunch is served at noon in the canteen.")),
        events(*texts("Who was the first president of Portugal?")),
        slowly(events(*texts(BY_ITSELF))),
    ],
    ids=["error", "answer", "other", "slow"],
)
def test_without_a_good_one_the_question_is_looked_for_as_it_is(
    alice: Reader, writer: UpstreamServer, written: Answer
) -> None:
    writer.answers = [written]
    answer = two_turns(alice)
    assert answer["found"]["query"] == f"{FIRST} {SECOND}"  # by itself it fits nothing
    assert answer["found"]["excerpts"]
    assert writer.asked


PLANTED = f"And where is the {PHRASE} in it?"
BLOCKED = {"input": {"illicit": {"block": 0.9}}}
ASKED = {"input": {"illicit": {"ask": 0.9}}}


@pytest.fixture
def first(site: Site, alice: Reader, writer: UpstreamServer) -> Iterator[dict[str, Any]]:
    """Where to ask what follows a question that was answered from a document."""
    plant_rule(site)
    collection = a_collection(alice.client)
    bring(alice, collection, HANDBOOK, "handbook.md")
    sources = {"collections": [collection]}
    accepted, answer = ask(alice, FIRST, sources=sources)
    writer.asked.clear()
    writer.answers = [events(*texts(BY_ITSELF))]
    place = {"conversation": accepted["conversation"]["id"], "parent": answer["id"]}
    yield {"sources": sources, **place}
    set_policy(site, {})


@pytest.mark.parametrize("content", [BLOCKED, ASKED])
def test_what_may_be_stopped_is_not_told_to_another_server(
    site: Site, alice: Reader, writer: UpstreamServer, first: dict[str, Any], content: Any
) -> None:
    set_policy(site, content, model_names=["vitrine-*"])
    accepted, _ = ask(alice, PLANTED, **first)
    assert alice.hear_end(accepted["run"])["kind"] == "refused"
    assert not writer.asked
    set_policy(site, content)
    accepted, _ = ask(alice, PLANTED, **first)
    assert alice.hear_end(accepted["run"])["kind"] == "refused"
    assert not writer.asked


def test_nor_what_is_taken_out_or_was_stopped(
    site: Site, alice: Reader, writer: UpstreamServer, first: dict[str, Any]
) -> None:
    set_policy(site, {"input": {"illicit": {"redact": 0.9}}}, model_names=["vitrine-*"])
    _, answer = ask(alice, PLANTED, **first)
    assert "And where is the [█" in writer.asked[-1].body["messages"][-1]["content"]
    set_policy(site, BLOCKED)
    _, answer = ask(alice, PLANTED, **first)
    assert answer["status"] == "refused"
    set_policy(site, {})
    ask(alice, SECOND, **first | {"parent": answer["id"]})
    asked = writer.asked[-1].body["messages"][-1]["content"]
    assert FIRST in asked
    assert PHRASE not in asked


def test_nor_what_was_deleted() -> None:
    picked: dict[str, Any] = {"collections": [{"id": str(uuid4())}], "documents": []}
    gone = Message(role="user", text="What did I delete?", deleted_at=timezone.now())
    answer = Message(role="assistant", text="The office opens at 8.")
    path = [gone, answer, Message(role="user", text=SECOND, sources=picked)]
    sources = sources_along(path)
    assert sources is not None
    assert (sources.earlier, sources.last_answer) == ((), answer.text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (BY_ITSELF, True),
        (SECOND, True),
        ("", False),
        ("the office", False),
        ("Where is lunch served in the office of Otto Brandt, who built cranes in 1987?", False),
        (f"{BY_ITSELF} " * 20, False),
    ],
)
def test_only_words_of_the_chat_are_looked_for(text: str, is_one: bool) -> None:
    said = "The office opens at 8 in the morning [1]."
    sources = Sources(SECOND, Picked(), earlier=(FIRST,), last_answer=said)
    assert is_faithful(text, sources) is is_one


def test_a_question_in_a_script_without_spaces_is_kept() -> None:
    sources = Sources("它几点开门？", Picked(), earlier=("市图书馆在哪里？",))
    assert is_faithful("市图书馆几点开门？", sources)
    assert not is_faithful("今天天气怎么样？", sources)
