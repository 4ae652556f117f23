"""Tool servers of a whole site: what chats with them take from other answers, and what does not fit."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.conftest import chat_environment
from tests.chat.reader import Frame, Reader, a_reader
from tests.chat.test_answers_from_documents import BUILTIN
from tests.chat.test_second_looks import rated
from tests.chat.test_token_branches import branched, fork_of
from tests.sites import Site, SiteMaker, wait_until
from tests.tool_servers import started_here, write_servers

BIG = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    schema = {"type": "object", "properties": {}}
    tools = [{"name": f"t{n}", "description": "much " * 700, "inputSchema": schema} for n in range(64)]
    begun = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "big", "version": "1"}}
    values = {"initialize": begun, "tools/list": {"tools": tools}}
    no = {"error": {"code": -32601, "message": "no"}}
    value = values.get(asked["method"])
    answer = {"result": value} if value else no
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


@pytest.fixture(scope="module")
def site(
    make_site: SiteMaker, small_models: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("servers")
    big = {"command": sys.executable, "args": ["-c", BIG]}
    path = write_servers(folder / "mcp.json", office=started_here(folder), big=big)
    environment = {**chat_environment(small_models), "VITRINE_MODERATION": "off"}
    with make_site(**environment, VITRINE_MCP=str(path)) as site:
        site.set_up().close()
        wait_until(lambda: _count(site, "chat_servertool") == 72, what="both servers' tools")
        yield site


@pytest.fixture
def alice(site: Site) -> Iterator[Reader]:
    yield from a_reader(site, "alice")


def _count(site: Site, table: str) -> int:
    with site.connection() as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # type: ignore[call-overload]
    return int(row[0]) if row else 0


def _tools_of_last(site: Site) -> list[str]:
    with site.connection() as connection:
        row = connection.execute(
            "SELECT params->'tools' FROM chat_generation ORDER BY created_at DESC LIMIT 1"
        ).fetchone()
    assert row
    return list(row[0])


def _ask(reader: Reader, text: str, **fields: Any) -> tuple[Frame, Frame]:
    accepted = reader.send(text, **fields)
    reader.hear_end(accepted["run"])
    return accepted, reader.saved(accepted)


def test_what_was_said_without_the_tools_is_not_said_again_with_them(alice: Reader) -> None:
    alice.client.patch("/api/personalisation", json={"caches_answers": True})
    question = "Hello, who are you?"
    _ask(alice, question, model=BUILTIN)
    assert _ask(alice, question, model=BUILTIN)[1]["from_cache"]
    with_tools = {"model": BUILTIN, "tool_servers": ["office"]}
    assert _ask(alice, question, **with_tools)[1]["from_cache"] is None
    assert _ask(alice, question, **with_tools)[1]["from_cache"] is None


def test_a_branch_at_a_token_has_the_tools_that_its_chat_has_now(alice: Reader, site: Site) -> None:
    accepted, _ = _ask(alice, "Who are you?", model="vitrine-small", tool_servers=["office"])
    assert "office__add" in _tools_of_last(site)
    chat = accepted["conversation"]["id"]
    assert alice.change("PATCH", f"/api/conversations/{chat}/setup", tool_servers=[]).is_success
    (turn,) = rated(alice, accepted).json()["turns"]
    number, other, _ = fork_of(turn["tokens"])
    fork = {"token": number, "choice": other["id"], "client_id": "fork"}
    response = branched(alice, accepted, **fork)
    assert response.status_code == 200, response.text
    assert _tools_of_last(site) == ["calculator", "clock"]


def test_tools_that_do_not_fit_are_a_clear_error(alice: Reader) -> None:
    _, answer = _ask(alice, "Hello!", model="vitrine-small", tool_servers=["big"])
    assert answer["status"] == "failed"
    assert answer["error"]["code"] == "context_length_exceeded"
    assert "64 tools" in answer["error"]["message"], answer["error"]


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_names_that_cannot_be_stored_are_refused(alice: Reader, name: str) -> None:
    accepted, _ = _ask(alice, "Hello!", model=BUILTIN)
    path = f"/api/conversations/{accepted['conversation']['id']}/setup"
    body = json.dumps({"tool_servers": [name]})
    headers = {"Content-Type": "application/json"}
    response = alice.client.patch(path, content=body, headers=headers)
    assert response.status_code in (400, 422), response.text
    made = json.dumps({"name": "x", "tool_servers": [name]})
    response = alice.client.post("/api/assistants", content=made, headers=headers)
    assert response.status_code in (400, 422), response.text
