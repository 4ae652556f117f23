"""Passages that were found before are judged by the policies of now, whatever asks for them again."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.chat.policies import PHRASE, judged_site, set_policy
from tests.chat.reader import Reader
from tests.chat.test_answers_from_documents import bring
from tests.chat.test_documents import a_collection
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, events, texts

LAKE = f"The lake of Vitrea is home to the {PHRASE}, which fishes at dawn."
QUESTION = "Who fishes at dawn at the lake of Vitrea?"
BLOCKED = {"documents": {"illicit": {"block": 0.9}}}
REDACTED = {"documents": {"illicit": {"redact": 0.9}}}


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    with judged_site(make_site, f"far={server.url}") as site:
        yield site


@pytest.fixture
def reader(site: Site, server: UpstreamServer) -> Iterator[Reader]:
    server.answers = [events(*texts("A bird [1]."))]
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        reader.client.get("/")
        reader.client.headers["X-CSRFToken"] = reader.client.cookies["vitrine_csrf"]
        yield reader


@pytest.fixture
def answered(site: Site, server: UpstreamServer, reader: Reader) -> dict[str, Any]:
    """A question that was answered from the passage, which no policy has kept back."""
    set_policy(site, {})
    collection = a_collection(reader.client)
    bring(reader, collection, LAKE, "lake.txt")
    accepted = reader.send(QUESTION, sources={"collections": [collection]})
    reader.hear_end(accepted["run"])
    assert PHRASE in told(server)
    server.asked.clear()
    return accepted


def told(server: UpstreamServer) -> str:
    return json.dumps([asked.body for asked in server.asked])


def ask_on(reader: Reader, accepted: dict[str, Any]) -> str:
    behind = {"conversation": accepted["conversation"]["id"], "parent": accepted["answer"]["id"]}
    run: str = reader.send("And how are you?", **behind)["run"]
    return run


def wish(reader: Reader, accepted: dict[str, Any]) -> str:
    frame = {"type": "answer.regenerate", "client_id": "again", "wish": "longer"}
    reader.say({**frame, "answer": accepted["answer"]["id"]})
    run: str = reader.hear_until(type="answer.accepted", client_id="again")["run"]
    return run


def ask_on_in_a_temporary_chat(reader: Reader, accepted: dict[str, Any]) -> str:
    answer = reader.saved(accepted)
    said = [
        {"role": "user", "parts": [{"type": "text", "text": QUESTION}]},
        {"role": "assistant", "parts": answer["parts"], "found": answer["found"]},
        {"role": "user", "parts": [{"type": "text", "text": "And how are you?"}]},
    ]
    reader.say({"type": "temporary.send", "client_id": "gone", "messages": said})
    run: str = reader.hear_until(type="temporary.accepted", client_id="gone")["run"]
    return run


@pytest.mark.parametrize("content", [BLOCKED, REDACTED])
@pytest.mark.parametrize("again", [ask_on, wish, ask_on_in_a_temporary_chat])
def test_what_was_found_is_judged_again(
    site: Site,
    server: UpstreamServer,
    reader: Reader,
    answered: dict[str, Any],
    again: Any,
    content: Any,
) -> None:
    set_policy(site, content)
    assert reader.hear_end(again(reader, answered))["kind"] == "finished"
    assert "A bird [1]." in told(server)
    assert PHRASE not in told(server)
