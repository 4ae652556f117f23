"""Connections to real tool servers, over HTTP and to a child process: calls, deaths, stops, limits."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chat.tools.base import ToolFailed
from chat.tools.servers import connection as connections
from chat.tools.servers.connection import ServerConnection, ToolServerAway
from chat.tools.servers.results import text_of
from chat.tools.servers.spec import ToolServerSpec
from tests.sites import free_port
from tests.tool_servers import ToolServer, started_here

NAMES = ["add", "search", "send_mail", "wait", "fail", "long", "mixed", "die"]


def of_command(entry: dict[str, Any], **others: Any) -> ToolServerSpec:
    command, args, cwd = entry["command"], tuple(entry["args"]), entry["cwd"]
    return ToolServerSpec("office", "office", command=command, args=args, cwd=cwd, **others)


def of_python(code: str) -> ToolServerSpec:
    return ToolServerSpec("a", "a", command=sys.executable, args=("-c", code))


@pytest.fixture
def listening(tmp_path: Path) -> Any:
    with ToolServer(tmp_path) as server:
        yield server


@pytest.fixture(params=["http", "stdio"])
async def connection(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[ServerConnection]:
    if request.param == "http":
        server = request.getfixturevalue("listening")
        made = ServerConnection(ToolServerSpec("office", "office", url=server.url, timeout_s=5.0))
    else:
        made = ServerConnection(of_command(started_here(tmp_path), timeout_s=5.0))
    yield made
    await made.close()


async def test_what_is_listed_and_called(connection: ServerConnection) -> None:
    assert [tool.name for tool in await connection.listed()] == NAMES
    results = await asyncio.gather(*(connection.call("add", {"a": n, "b": 1}) for n in range(20)))
    assert [text_of(one) for one in results] == [str(n + 1) for n in range(20)]
    mixed = text_of(await connection.call("mixed", {}))
    assert mixed == (
        "a word\n\n[image: image/png, which is not shown]\n\n[the plan](https://intranet.example/plan)"
    )
    assert len(text_of(await connection.call("long", {"num_chars": 100_000}))) == 20_000


async def test_a_tool_that_fails_says_why(connection: ServerConnection) -> None:
    for tool, arguments in (("fail", {}), ("add", {"a": "much"}), ("nothing", {})):
        with pytest.raises((ToolFailed, ToolServerAway)) as caught:
            text_of(await connection.call(tool, arguments))
        assert str(caught.value)
    assert text_of(await connection.call("add", {"a": 1, "b": 1})) == "2"


async def test_one_that_dies_is_there_again(tmp_path: Path) -> None:
    connection = ServerConnection(of_command(started_here(tmp_path), timeout_s=5.0))
    with pytest.raises(ToolServerAway, match="broke") as caught:
        await connection.call("die", {})
    assert caught.value.was_asked
    assert text_of(await connection.call("add", {"a": 1, "b": 1})) == "2"
    await connection.close()


async def test_a_server_that_was_started_anew(tmp_path: Path) -> None:
    """Its session is unknown there: that is told once, and the next call finds it."""
    with ToolServer(tmp_path) as server:
        connection = ServerConnection(ToolServerSpec("office", "office", url=server.url))
        await connection.listed()
        server.kill()
        with pytest.raises(ToolServerAway):
            await connection.call("add", {"a": 1, "b": 1})
        server.start()
        connection._not_before_s = 0.0
        for _ in range(2):
            try:
                assert text_of(await connection.call("add", {"a": 1, "b": 1})) == "2"
                break
            except ToolServerAway:
                continue
        else:
            pytest.fail("it was not found again")
        await connection.close()


async def test_a_stopped_call_is_cancelled_there(
    connection: ServerConnection, tmp_path: Path
) -> None:
    call = asyncio.create_task(connection.call("wait", {"seconds": 60}))
    await _until_logged(tmp_path, "began")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _until_logged(tmp_path, "is_cancelled")
    assert text_of(await connection.call("add", {"a": 1, "b": 1})) == "2"


async def _until_logged(folder: Path, word: str) -> None:
    log = folder / "tools.log"
    async with asyncio.timeout(20):
        while not log.exists() or word not in log.read_text():  # noqa: ASYNC110 a file of another process
            await asyncio.sleep(0.02)


async def test_a_call_that_takes_too_long(tmp_path: Path) -> None:
    connection = ServerConnection(of_command(started_here(tmp_path), timeout_s=0.5))
    await connection.listed()
    with pytest.raises(ToolServerAway, match=r"took longer than 0\.5 s") as caught:
        await connection.call("wait", {"seconds": 60})
    assert caught.value.was_asked
    await connection.close()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (ToolServerSpec("a", "a", command="no-such-command-at-all"), "cannot be reached"),
        (
            ToolServerSpec(
                "a", "a", command=sys.executable, args=("-c", "raise SystemExit('no paper')")
            ),
            "no paper",
        ),
        (ToolServerSpec("a", "a", url=f"http://127.0.0.1:{free_port()}/mcp"), "cannot be reached"),
    ],
)
async def test_one_that_cannot_be_reached(
    spec: ToolServerSpec, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = ServerConnection(spec)
    with pytest.raises(ToolServerAway, match="a cannot be reached") as caught:
        await connection.listed()
    assert problem in connection.problem
    assert not caught.value.was_asked
    assert not connection.is_open
    with pytest.raises(
        ToolServerAway, match="a cannot be reached"
    ):  # at once: it is not tried for a while
        await asyncio.wait_for(connection.listed(), 0.5)
    await connection.close()


async def test_one_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECT_TIMEOUT_S", 0.5)
    silent = ToolServerSpec(
        "a", "a", command=sys.executable, args=("-c", "import time; time.sleep(60)")
    )
    connection = ServerConnection(silent)
    with pytest.raises(ToolServerAway, match="a cannot be reached"):
        await connection.listed()
    assert "it does not answer" in connection.problem
    await connection.close()


async def test_an_endless_answer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.tools.servers.bounded.MAX_ANSWER_BYTES", 100_000)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        try:
            while True:
                writer.write(b'{"x":' * 10_000)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        connection = ServerConnection(ToolServerSpec("a", "a", url=f"http://127.0.0.1:{port}/"))
        with pytest.raises(ToolServerAway):
            await asyncio.wait_for(connection.listed(), 30)
        await connection.close()
