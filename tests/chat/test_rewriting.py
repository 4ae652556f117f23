"""Questions that are put by themselves by a model before documents are searched, within bounds."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from chat.rewriting import is_faithful
from chat.sources import Picked, Sources
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
    ) as site:
        site.set_up().close()
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
    sources = Sources(SECOND, Picked(), (FIRST,), "The office opens at 8 in the morning [1].")
    assert is_faithful(text, sources) is is_one


def test_a_question_in_a_script_without_spaces_is_kept() -> None:
    sources = Sources("它几点开门？", Picked(), ("市图书馆在哪里？",))
    assert is_faithful("市图书馆几点开门？", sources)
    assert not is_faithful("今天天气怎么样？", sources)
