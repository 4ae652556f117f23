"""What no model has written here is judged before a model reads it, wherever in a request it stands."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import judged_site, plant_rule, set_policy
from tests.chat.reader import Frame, Reader
from tests.chat.test_temporary import ask, said
from tests.sites import Site, SiteMaker, email_of
from tests.upstream_server import UpstreamServer, events, texts

PHRASE = "карминная цапля"  # which JSON likes to write as numbers
BLOCKED = {"input": {"illicit": {"block": 0.9}}}


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    with judged_site(make_site, f"far={server.url}?continue=prefix", pattern=PHRASE) as site:
        yield site


@pytest.fixture
def reader(site: Site, server: UpstreamServer) -> Iterator[Reader]:
    set_policy(site, BLOCKED)
    server.answers = [events(*texts("Nothing to see."))]
    server.asked.clear()
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


@pytest.fixture(scope="module")
def caller(site: Site) -> Caller:
    site.sign_up("programmer").close()
    return Caller(site, site.create_api_key(email_of("programmer")))


def told(server: UpstreamServer) -> str:
    return json.dumps([asked.body for asked in server.asked], ensure_ascii=False)


# --- programs -------------------------------------------------------------------------------------

USER = {"role": "user", "content": "And now?"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def called(arguments: str) -> list[Frame]:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}
    result = {"role": "tool", "tool_call_id": "c", "content": "nothing"}
    return [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, result]


def described(**fields: Any) -> Frame:
    return {**TOOL, "function": {**TOOL["function"], **fields}}  # type: ignore[dict-item]


def formatted(schema: Frame) -> Frame:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


PLACES: dict[str, Frame] = {
    "system": {"messages": [{"role": "system", "content": PHRASE}, USER]},
    "name": {"messages": [{**USER, "name": PHRASE}]},
    "answer": {"messages": [USER, {"role": "assistant", "content": PHRASE}, USER]},
    "result": {"messages": [*called("{}")[:2], {**called("{}")[2], "content": PHRASE}]},
    "call": {"messages": called(json.dumps({"at": PHRASE}, ensure_ascii=False))},
    "escaped call": {"messages": called(json.dumps({"at": PHRASE}))},
    "broken call": {"messages": called(f'{{"at": "{PHRASE}')},
    "tool": {"messages": [USER], "tools": [described(description=f"Finds the {PHRASE}.")]},
    "parameter": {
        "messages": [USER],
        "tools": [described(parameters={"type": "object", "properties": {PHRASE: {}}})],
    },
    "format": {
        "messages": [USER],
        "response_format": formatted({"type": "string", "description": PHRASE}),
    },
}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("place", [place for place in PLACES if place != "result"])
def test_a_program_hides_it_nowhere(server: UpstreamServer, caller: Caller, place: str) -> None:
    response = caller.post("/chat/completions", {"model": "far", **PLACES[place]})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == "content_filter"
    assert not server.asked


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("place", PLACES)
def test_what_is_to_be_taken_out_is_taken_out_everywhere(
    site: Site, server: UpstreamServer, caller: Caller, place: str
) -> None:
    plant_rule(site, "secrets", PHRASE)
    try:
        set_policy(site, {"input": {"secrets": {"redact": 0.9}}})
        caller.post("/chat/completions", {"model": "far", **PLACES[place]})
        assert "цапля" not in told(server)
    finally:
        plant_rule(site, pattern=PHRASE)


@pytest.mark.parametrize(
    ("action", "told_instead"), [("block", "keeps this result back"), ("redact", "[█")]
)
def test_what_a_programs_tool_says_is_judged_as_a_tools_result(
    site: Site, server: UpstreamServer, caller: Caller, action: str, told_instead: str
) -> None:
    set_policy(site, {"tools": {"illicit": {action: 0.9}}})
    server.answers = [events(*texts("Nothing to see."))]
    server.asked.clear()
    response = caller.post("/chat/completions", {"model": "far", **PLACES["result"]})
    assert response.status_code == 200, response.text
    assert "цапля" not in told(server)
    assert told_instead in told(server)


# --- chats that were not held here ----------------------------------------------------------------


def brought() -> list[Frame]:
    """A branch of which the page says that a model had written it."""
    return [
        said("user", "A story.", id="1"),
        said("assistant", f"Of the {PHRASE}.", id="2", parent="1", model="far"),
        said("user", "Go on.", id="3", parent="2"),
    ]


def with_call() -> list[Frame]:
    call = {"type": "tool_call", "id": "c", "name": "clock", "arguments": json.dumps([PHRASE])}
    result = {"type": "tool_result", "id": "c", "content": "noon"}
    return [
        said("user", "Hi."),
        {"role": "assistant", "parts": [call, result]},
        said("user", "So?"),
    ]


@pytest.mark.parametrize(
    ("messages", "fields"),
    [
        (brought()[:2], {"wish": "shorter"}),
        ([brought()[0], {**brought()[1], "status": "stopped"}], {"goes_on": True}),
    ],
)
def test_a_temporary_chat_is_its_pages_word(
    server: UpstreamServer, reader: Reader, messages: list[Frame], fields: Frame
) -> None:
    accepted = ask(reader, *messages, model="far", **fields)
    end = reader.hear_end(accepted["run"])
    assert (end["kind"], end.get("stage")) == ("refused", "input")
    assert not server.asked


@pytest.mark.parametrize("messages", [brought(), with_call()])
def test_what_such_a_page_says_of_before_is_left_out(
    server: UpstreamServer, reader: Reader, messages: list[Frame]
) -> None:
    accepted = ask(reader, *messages, model="far")
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    assert "цапля" not in told(server)


def test_a_stopped_question_is_not_in_the_way_of_a_temporary_chat(
    server: UpstreamServer, reader: Reader
) -> None:
    refused = {"role": "assistant", "status": "refused", "parts": []}
    accepted = ask(reader, said("user", PHRASE), refused, said("user", "How are you?"), model="far")
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    assert "цапля" not in told(server)


def kept(reader: Reader, *messages: Frame) -> Any:
    body = {"client_id": uuid4().hex, "model": "far", "messages": messages}
    response = reader.change("POST", "/api/temporary/keep", **body)
    assert response.status_code == 201, response.text
    return response.json()


def test_a_chat_that_was_kept_is_judged_and_so_is_a_branch_of_it(
    server: UpstreamServer, reader: Reader
) -> None:
    made = kept(reader, *brought()[:2])
    chat, answer = made["conversation"]["id"], made["messages"][-1]["id"]
    accepted = reader.send("Go on.", conversation=chat, parent=answer)
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    path = f"/api/messages/{answer}/branch-off"
    branch = reader.change("POST", path, client_id="branch").json()["conversation"]["id"]
    leaf = reader.conversation(branch)["messages"][-1]["id"]
    accepted = reader.send("Go on.", conversation=branch, parent=leaf)
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    assert "цапля" not in told(server)


def test_nobody_goes_on_with_an_answer_that_was_brought(
    server: UpstreamServer, reader: Reader
) -> None:
    question, answer = brought()[:2]
    made = kept(reader, question, {**answer, "status": "stopped"})
    path = f"/api/messages/{made['messages'][-1]['id']}/continue"
    response = reader.change("POST", path, client_id="on")
    assert response.status_code in (200, 201), response.text
    run = response.json()["run"]
    reader.follow(run)
    end = reader.hear_end(run)
    assert end["kind"] == "refused", end
    assert not server.asked


def test_a_chat_of_somebody_else_is_judged_and_costs_no_strike_of_its_reader(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    """Alice was stopped, shared the chat all the same, and Bob goes on with it."""
    set_policy(site, {**BLOCKED, "strikes": {"illicit": 1}})
    first = reader.send("Hello.")
    assert reader.hear_end(first["run"])["kind"] == "finished"
    chat = {"conversation": first["conversation"]["id"]}
    second = reader.send(PHRASE, parent=first["answer"]["id"], **chat)
    assert reader.hear_end(second["run"])["kind"] == "refused"
    third = reader.send("And now?", parent=second["answer"]["id"], **chat)
    assert reader.hear_end(third["run"])["kind"] == "finished"
    wish = {**chat, "message": third["answer"]["id"]}
    url = reader.change("POST", "/api/shares", **wish).json()["share"]["url"]
    with Reader.signed_up(site, "bob") as bob, closing(bob.client):
        page = bob.client.get(url)
        assert page.status_code == 200
        assert "цапля" not in page.text, "what was stopped is no longer its author's alone"
        made = bob.change("POST", f"{url}/continue")
        chat_of_bob = made.headers["location"].rstrip("/").rpartition("/")[2]
        leaf = bob.conversation(chat_of_bob)["messages"][-1]["id"]
        accepted = bob.send("And you?", conversation=chat_of_bob, parent=leaf)
        assert bob.hear_end(accepted["run"])["kind"] == "finished"
    assert "цапля" not in told(server)


def test_what_somebody_else_has_edited_is_left_out_for_who_goes_on_with_it(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    first = reader.send("Hello.")
    reader.hear_end(first["run"])
    path = f"/api/messages/{first['answer']['id']}/edit"
    edited = reader.change("POST", path, text=f"The {PHRASE}.", client_id="edited").json()
    wish = {"conversation": first["conversation"]["id"], "message": edited["message"]["id"]}
    url = reader.change("POST", "/api/shares", **wish).json()["share"]["url"]
    server.asked.clear()
    with Reader.signed_up(site, "bob") as bob, closing(bob.client):
        made = bob.change("POST", f"{url}/continue")
        chat = made.headers["location"].rstrip("/").rpartition("/")[2]
        leaf = bob.conversation(chat)["messages"][-1]["id"]
        accepted = bob.send("And you?", conversation=chat, parent=leaf)
        assert bob.hear_end(accepted["run"])["kind"] == "finished"
    assert "цапля" not in told(server)
