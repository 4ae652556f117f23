"""The tool `file_search` of /v1/responses: a model looks something up in vector stores, and cites it.

The first half asks the built-in model with OpenAI's client; in the second another server says what a
test has written, so that it is seen what models are told.
"""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import PHRASE, judged_site, set_policy
from tests.chat.test_limits import a_key
from tests.chat.test_openai_files import a_client
from tests.chat.test_openai_vector_stores import BIRDS, FEATURES, a_file, a_filled_store
from tests.openai_description import check, needs_description
from tests.sites import Site, SiteMaker, email_of
from tests.upstream_server import Answer, UpstreamServer, chunk, events, texts

BUILTIN = "vitrine-small"
GRANITE = "What is granite made of?"


@pytest.fixture(scope="module")
def owner(chat_site: Site) -> Iterator[openai.OpenAI]:
    with a_client(chat_site, a_key(chat_site, name="fs-alice", features=FEATURES)) as client:
        yield client


@pytest.fixture(scope="module")
def raw(chat_site: Site, owner: openai.OpenAI) -> Caller:
    return Caller(chat_site, owner.api_key)


@pytest.fixture(scope="module")
def filled(owner: openai.OpenAI) -> dict[str, str]:
    return a_filled_store(owner)


def search_in(*stores: str, **fields: Any) -> dict[str, Any]:
    return {"type": "file_search", "vector_store_ids": list(stores), **fields}


def ask(store: str, text: str = GRANITE, **fields: Any) -> dict[str, Any]:
    return {"model": BUILTIN, "input": text, "tools": [search_in(store)], **fields}


# --- with the built-in model --------------------------------------------------------------------------


def test_an_answer_cites_the_file_that_it_was_found_in(
    owner: openai.OpenAI, filled: dict[str, str]
) -> None:
    made = owner.responses.create(
        model=BUILTIN,
        input=GRANITE,
        tools=[{"type": "file_search", "vector_store_ids": [filled["store"]]}],
        include=["file_search_call.results"],
    )
    call, message = made.output
    assert call.type == "file_search_call"
    assert message.type == "message"
    assert (call.status, call.queries) == ("completed", ["What is granite made of"])
    assert call.results is not None
    assert call.results[0].file_id == filled["stones.md"]
    assert call.results[0].attributes == {"kind": "mineral", "year": 2026, "final": False}
    assert "quartz" in (call.results[0].text or "")
    assert 0.3 < (call.results[0].score or 0) <= 1
    [content] = message.content
    assert content.type == "output_text"
    assert "quartz, feldspar and mica [1]" in content.text
    [citation] = content.annotations
    assert citation.type == "file_citation"
    assert (citation.file_id, citation.filename) == (filled["stones.md"], "stones.md")
    assert content.text[citation.index :].startswith("[1]")


@needs_description
@pytest.mark.parametrize("include", [[], ["file_search_call.results"]])
def test_bodies_and_events_are_as_published(
    raw: Caller, filled: dict[str, str], include: list[str]
) -> None:
    asked = ask(filled["store"], include=include, tool_choice={"type": "file_search"})
    body = raw.post("/responses", asked).json()
    check(body, "Response")
    assert (body["output"][0]["results"] is not None) is bool(include)
    frames = raw.stream("/responses", asked)
    for _, event in frames:
        check(event, "ResponseStreamEvent")
    assert [event["sequence_number"] for _, event in frames] == list(range(len(frames)))
    kinds = [name.removeprefix("response.") for name, _ in frames]
    assert kinds[2:7] == [
        "output_item.added",
        "file_search_call.in_progress",
        "file_search_call.searching",
        "file_search_call.completed",
        "output_item.done",
    ]
    told = [e["annotation"] for n, e in frames if n == "response.output_text.annotation.added"]
    last = frames[-1][1]["response"]["output"]
    assert last[1]["content"][0]["annotations"] == told != []
    assert [one["type"] for one in last] == [one["type"] for one in body["output"]]


def test_what_is_not_there_is_said_to_be_not_there(raw: Caller, filled: dict[str, str]) -> None:
    body = raw.post("/responses", ask(filled["store"], "Who wrote the hobbit?")).json()
    assert [one["type"] for one in body["output"]] == ["file_search_call", "message"]
    assert "not in the documents" in body["output"][1]["content"][0]["text"]
    assert body["output"][1]["content"][0]["annotations"] == []


@pytest.mark.parametrize(
    ("narrowed", "num"),
    [
        ({}, 1),
        ({"filters": {"type": "eq", "key": "kind", "value": "mineral"}}, 1),
        ({"filters": {"type": "eq", "key": "kind", "value": "animal"}}, 0),
        ({"filters": {"type": "eq", "key": "kind", "value": "nothing"}}, 0),
        ({"ranking_options": {"ranker": "auto", "score_threshold": 1}}, 0),
        ({"max_num_results": 1}, 1),
    ],
)
def test_searches_are_narrowed(
    raw: Caller, filled: dict[str, str], narrowed: dict[str, Any], num: int
) -> None:
    tools = [search_in(filled["store"], **narrowed)]
    asked = ask(filled["store"], tools=tools, include=["file_search_call.results"])
    found = raw.post("/responses", asked).json()["output"][0]["results"]
    assert [one["filename"] for one in found] == ["stones.md"] * num


def test_passages_are_not_kept_and_the_chat_goes_on(
    owner: openai.OpenAI, raw: Caller, filled: dict[str, str]
) -> None:
    asked = ask(filled["store"], include=["file_search_call.results"])
    made = raw.post("/responses", asked).json()
    kept = raw.get(f"/responses/{made['id']}").json()
    assert kept["output"][0]["results"] is None
    assert kept["output"][1] == made["output"][1]
    behind = {"previous_response_id": made["id"], "include": asked["include"]}
    on = raw.post("/responses", ask(filled["store"], "How long is the pike?", **behind)).json()
    assert on["status"] == "completed"
    assert on["output"][0]["results"][0]["filename"] == "fish.md"
    question = {"role": "user", "content": "Thank you."}
    for output in (made["output"], kept["output"]):
        again = {"input": [{"role": "user", "content": GRANITE}, *output, question]}
        assert raw.post("/responses", ask(filled["store"], **again)).status_code == 200
    page = owner.responses.input_items.list(
        raw.post("/responses", ask(filled["store"], **again)).json()["id"]
    )
    assert "file_search_call" in {one.type for one in page.data}


def test_a_choice_of_none_searches_nothing(raw: Caller, filled: dict[str, str]) -> None:
    body = raw.post("/responses", ask(filled["store"], tool_choice="none")).json()
    assert [one["type"] for one in body["output"]] == ["message"]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"tools": [{"type": "file_search"}]}, "tools"),
        ({"tools": [search_in()]}, "tools"),
        ({"tools": [search_in(*[f"vs_{n}" for n in range(21)])]}, "tools"),
        ({"tools": [search_in("STORE", max_num_results=0)]}, "tools"),
        ({"tools": [search_in("STORE", max_num_results=51)]}, "tools"),
        ({"tools": [search_in("STORE", filters={"type": "like"})]}, "tools"),
        ({"tools": [search_in("STORE", ranking_options={"score_threshold": 2})]}, "tools"),
        ({"tools": [search_in("STORE", ranking_options={"ranker": "none"})]}, "tools"),
        ({"tools": [search_in("STORE"), search_in("STORE")]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [], "tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"tool_choice": {"type": "computer"}}, "tool_choice"),
    ],
)
def test_what_makes_no_sense_is_refused(
    raw: Caller, filled: dict[str, str], changes: dict[str, Any], param: str
) -> None:
    text = json.dumps(ask(filled["store"], **changes)).replace("STORE", filled["store"])
    response = raw.post("/responses", text)
    assert response.status_code == 400
    assert response.json()["error"]["param"].startswith(param)


def test_nobody_searches_what_is_not_theirs(
    chat_site: Site, owner: openai.OpenAI, filled: dict[str, str]
) -> None:
    charlie = Caller(chat_site, a_key(chat_site, name="fs-charlie", features=FEATURES))
    foreign, missing = (
        charlie.post("/responses", ask(store)) for store in (filled["store"], f"vs_{'0' * 32}")
    )
    assert foreign.status_code == missing.status_code == 404
    assert foreign.text.replace(filled["store"], "") == missing.text.replace(f"vs_{'0' * 32}", "")
    own = a_filled_store(a_client(chat_site, charlie.headers["Authorization"][7:]))
    both = ask(own["store"], tools=[search_in(own["store"], filled["store"])])
    assert charlie.post("/responses", both).status_code == 404


def test_a_key_for_chats_alone_searches_no_files(chat_site: Site, filled: dict[str, str]) -> None:
    narrow = Caller(chat_site, chat_site.create_api_key(email_of("fs-alice"), "chat"))
    response = narrow.post("/responses", ask(filled["store"]))
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "insufficient_scope"
    assert narrow.post("/responses", {"model": BUILTIN, "input": "Hi"}).status_code == 200


def test_an_expired_store_is_not_searched(
    owner: openai.OpenAI, raw: Caller, chat_site: Site
) -> None:
    days: Any = {"anchor": "last_active_at", "days": 1}
    store = owner.vector_stores.create(name="Old", expires_after=days).id
    chat_site.execute(
        "UPDATE retrieval_collection SET last_active_at = now() - interval '25 hours' WHERE id = %s",
        store.removeprefix("vs_"),
    )
    response = raw.post("/responses", ask(store))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "vector_store_expired"


# --- what models are told -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"far={server.url},tight={server.url}?context=600,deaf={server.url}?tools=off"
    with judged_site(make_site, models) as site:
        yield site


@pytest.fixture(scope="module")
def program(judged: Site) -> Caller:
    return Caller(judged, a_key(judged, name="fs-judged", features=FEATURES))


@pytest.fixture(scope="module")
def store(judged: Site, program: Caller) -> str:
    set_policy(judged, {})
    with a_client(judged, program.headers["Authorization"][7:]) as client:
        store = client.vector_stores.create(name="Lakes").id
        for name, text in (
            ("lake.txt", f"The lake of Vitrea is home to the {PHRASE}, which fishes at dawn."),
            ("sea.txt", "The sea of Vitrea is salty, and its harbour has a red crane."),
            ("birds.md", BIRDS),
        ):
            client.vector_stores.files.create_and_poll(
                a_file(client, text, name), vector_store_id=store, poll_interval_ms=100
            )
    return store


@pytest.fixture(autouse=True)
def _unasked(server: UpstreamServer) -> None:
    server.asked.clear()


def calls(*called: tuple[str, str], reason: str = "tool_calls", num_read: int = 0) -> Answer:
    """An answer that is calls: their names and arguments. `num_read`: tokens that its prompt had."""
    values = [
        {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(called)
    ]
    usage = {"choices": [], "usage": {"prompt_tokens": num_read, "completion_tokens": 9}}
    told = [usage] if num_read else []
    return events(chunk(tool_calls=values), chunk(reason), *told, "[DONE]")


def looked_for(text: str, name: str = "search_documents") -> tuple[str, str]:
    return name, json.dumps({"query": text})


def results_told(server: UpstreamServer) -> list[str]:
    messages = server.asked[-1].body["messages"]
    return [one["content"] for one in messages if one["role"] == "tool"]


LAMP: dict[str, Any] = {
    "type": "function",
    "name": "lamp",
    "parameters": {"type": "object", "properties": {}},
}


def far(store: str, **fields: Any) -> dict[str, Any]:
    return {**ask(store, "Tell me."), "model": "far", **fields}


def test_passages_are_numbered_through_all_searches(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [
        calls(looked_for("fishes at dawn at the lake"), looked_for("salty sea harbour crane")),
        calls(looked_for("zanzibar canary weighs")),
        events(*texts("A heron [1], salt [2] and a canary [3, 9].")),
    ]
    body = program.post("/responses", far(store)).json()
    kinds = [one["type"] for one in body["output"]]
    assert kinds == ["file_search_call"] * 3 + ["message"]
    told = results_told(server)
    assert [text.split("]")[0] for text in told] == ["[1", "[2", "[3"]
    cited = body["output"][3]["content"][0]["annotations"]
    assert [one["filename"] for one in cited] == ["lake.txt", "sea.txt", "birds.md"]
    assert body["usage"]["output_tokens"] >= 1


def test_a_call_is_forced_once(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(looked_for("sea")), events(*texts("Salt."))]
    asked = far(store, tool_choice={"type": "file_search"}, max_output_tokens=50)
    assert program.post("/responses", asked).status_code == 200
    first, second = (one.body for one in server.asked)
    assert first["tool_choice"]["function"]["name"] == "search_documents"
    assert "tool_choice" not in second
    assert second["max_tokens"] <= first["max_tokens"] == 50


def test_a_model_that_calls_nothing_is_not_asked_to_search(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    refused = program.post("/responses", far(store, model="deaf"))
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "tools"
    assert "deaf calls no tools" in refused.json()["error"]["message"]
    assert server.asked == []
    server.answers = [events(*texts("Salt."))]
    unasked = far(store, model="deaf", tool_choice="none")
    assert program.post("/responses", unasked).status_code == 200


def test_functions_of_the_callers_are_its_own_to_run(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(looked_for("salty sea"), ("lamp", "{}"))]
    tools = [search_in(store), LAMP]
    body = program.post("/responses", far(store, tools=tools)).json()
    assert [one["type"] for one in body["output"]] == ["file_search_call", "function_call"]
    assert [one["status"] for one in body["output"]] == ["completed", "completed"]
    assert len(server.asked) == 1
    server.answers = [calls(("lamp", "{}"))]
    body = program.post("/responses", far(store, tools=tools)).json()
    assert [one["type"] for one in body["output"]] == ["function_call"]


def test_a_function_of_the_same_name_is_not_ours(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [
        calls(looked_for("sea", "file_search"), looked_for("mine")),
    ]
    tools = [{**LAMP, "name": "search_documents"}, search_in(store)]
    body = program.post("/responses", far(store, tools=tools)).json()
    assert [one["type"] for one in body["output"]] == ["file_search_call", "function_call"]
    names = [one["function"]["name"] for one in server.asked[0].body["tools"]]
    assert names == ["search_documents", "file_search"]


@pytest.mark.parametrize("arguments", ["{}", '{"query": 5}', '{"query": " "}'])
def test_a_call_that_says_nothing_is_told_so(
    judged: Site, program: Caller, server: UpstreamServer, store: str, arguments: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(("search_documents", arguments)), events(*texts("Sorry."))]
    body = program.post("/responses", far(store)).json()
    assert body["output"][0]["queries"] == []
    assert body["output"][0]["status"] == "completed"
    assert results_told(server) == ["error: say what to look for, as query"]


def test_an_answer_that_only_searches_comes_to_an_end(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(looked_for("sea"))]
    body = program.post("/responses", far(store)).json()
    assert body["status"] == "completed"
    assert len(server.asked) == 8
    assert not server.asked[-1].body.get("tools")


@pytest.mark.parametrize(
    ("policy", "is_found"), [("block", False), ("redact", True)], ids=["block", "redact"]
)
def test_a_policy_keeps_passages_from_models(
    judged: Site, program: Caller, server: UpstreamServer, store: str, policy: str, is_found: bool
) -> None:
    set_policy(judged, {"documents": {"illicit": {policy: 0.9}}})
    server.answers = [calls(looked_for("fishes at dawn at the lake")), events(*texts("So [1]."))]
    asked = far(store, include=["file_search_call.results"])
    body = program.post("/responses", asked).json()
    [told] = results_told(server)
    assert PHRASE not in json.dumps([one.body for one in server.asked])
    assert ("lake of Vitrea" in told) is is_found
    names = [one["filename"] for one in body["output"][0]["results"]]
    assert ("lake.txt" in names) is is_found


def test_a_blocked_question_searches_nothing(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {"input": {"illicit": {"block": 0.9}}})
    server.answers = [calls(looked_for("sea"))]
    response = program.post("/responses", far(store, input=f"Tell me of the {PHRASE}."))
    assert response.status_code == 400
    assert server.asked == []


def test_a_server_that_fails_behind_a_search_is_told_of(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(looked_for("sea")), events("nonsense", is_cut=True)]
    frames = program.stream("/responses", far(store))
    assert frames[-1][0] == "response.failed"
    assert frames[-1][1]["response"]["output"][0]["status"] == "completed"


def test_an_answer_goes_on_counting_behind_passages_that_it_is_shown(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    asked = far(store, include=["file_search_call.results"])
    server.answers = [calls(looked_for("salty sea harbour crane")), events(*texts("Salt [1]."))]
    made = program.post("/responses", asked).json()
    server.answers = [
        calls(looked_for("zanzibar canary weighs")),
        events(*texts("Salt [1], and a canary [2].")),
    ]
    question = {"role": "user", "content": "And the canary?"}
    on = program.post(
        "/responses", {**asked, "input": [question, *made["output"], question]}
    ).json()
    assert [text.split("]")[0] for text in results_told(server)] == ["[1", "[2"]
    cited = on["output"][-1]["content"][0]["annotations"]
    assert [one["filename"] for one in cited] == ["sea.txt", "birds.md"]


def test_a_call_of_what_nobody_has_offered_is_told_so(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(("oven", "{}")), events(*texts("Sorry."))]
    body = program.post("/responses", far(store, tools=[search_in(store), LAMP])).json()
    assert [one["type"] for one in body["output"]] == ["message"]
    assert results_told(server) == ["error: there is no tool named oven"]


def test_an_answer_that_is_cut_in_a_turn_has_no_other_one(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {})
    server.answers = [calls(looked_for("sea"), reason="length"), events(*texts("Salt."))]
    body = program.post("/responses", far(store, max_output_tokens=9)).json()
    assert (body["status"], len(server.asked)) == ("incomplete", 1)
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [one["status"] for one in body["output"]] == ["completed"]


@pytest.mark.parametrize(("num_read", "fits"), [(200, True), (460, False)])
def test_passages_take_what_a_known_context_leaves(
    judged: Site, program: Caller, server: UpstreamServer, store: str, num_read: int, fits: bool
) -> None:
    set_policy(judged, {})
    server.answers = [calls(looked_for("salty sea"), num_read=num_read), events(*texts("Salt."))]
    assert program.post("/responses", far(store, model="tight")).status_code == 200
    [told] = results_told(server)
    assert told.startswith("[1] " if fits else "error: there is no room left")


def test_what_is_cut_by_a_policy_has_read_the_prompts_of_all_turns(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {"output": {"illicit": {"block": 0.9}}})
    said = events(*texts(f"It is the {PHRASE}. "))
    num_read = []
    for before in ([], [calls(looked_for("salty sea"))]):
        server.answers = [*before, said]
        body = program.post("/responses", far(store)).json()
        assert body["incomplete_details"] == {"reason": "content_filter"}
        num_read.append(body["usage"]["input_tokens"])
    assert num_read[1] > 2 * num_read[0] > 0


def test_a_call_that_a_policy_stops_ends_the_search_beside_it(
    judged: Site, program: Caller, server: UpstreamServer, store: str
) -> None:
    set_policy(judged, {"output": {"illicit": {"block": 0.9}}})
    server.answers = [calls(looked_for("sea"), looked_for(PHRASE))]
    body = program.post("/responses", far(store)).json()
    assert body["status"] == "incomplete"
    assert [one["status"] for one in body["output"]] == ["incomplete"]
