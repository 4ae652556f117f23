"""Tool servers that mean harm, or are broken: they take neither the memory nor the event loop, and what
one call gets spoils no other."""

import asyncio
import gzip
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from chat.tools.servers import connection as connections
from chat.tools.servers.connection import ServerConnection, ToolServerAway
from chat.tools.servers.results import text_of
from chat.tools.servers.spec import ToolServerSpec
from tests.hostile_tool_server import Answer, HostileServer, Value, http, result, said
from tests.sites import wait_until

ONE = {"name": "t", "inputSchema": {"type": "object"}}
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def asked(**answers: Answer) -> AsyncIterator[tuple[HostileServer, ServerConnection]]:
    named = {name.replace("_", "/"): answer for name, answer in answers.items()}
    async with HostileServer(named) as server:
        connection = ServerConnection(server.spec())
        try:
            yield server, connection
        finally:
            await connection.close()


async def longest_pause_s(work: Any) -> float:
    """For how long nothing else could run."""
    longest_s, task = 0.0, asyncio.ensure_future(work)
    while not task.done():
        before_s = monotonic()
        await asyncio.sleep(0.01)
        longest_s = max(longest_s, monotonic() - before_s)
    await task
    return longest_s


async def _nothing(_: Value) -> Value:
    return result(tools=[])


async def test_a_megabyte_that_would_become_a_gigabyte() -> None:
    bomb = gzip.compress(b"[" + b" " * 300_000_000 + b"]")

    async def answer(_: Value) -> bytes:
        return http(bomb, "Content-Type: application/json", "Content-Encoding: gzip")

    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with asked(tools_list=answer) as (_, connection):
        with pytest.raises(ToolServerAway):
            await connection.listed()
        assert "compressed" in connection.problem
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 200 * 1024


async def test_a_pattern_that_tries_every_way() -> None:
    """A server sends the schema of its results and the results: both are its own."""
    evil = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}

    async def listing(_: Value) -> Value:
        return result(tools=[{**ONE, "outputSchema": evil}])

    async def answer(_: Value) -> Value:
        return {"result": {**said("yes")["result"], "structuredContent": {"x": "a" * 26 + "!"}}}

    async with asked(tools_list=listing, tools_call=answer) as (_, connection):
        await connection.listed()
        assert await longest_pause_s(connection.call("t", {})) < 1.0


async def test_pages_without_an_end() -> None:
    async def answer(_: Value) -> Value:
        return result(tools=[], nextCursor="more")

    async with asked(tools_list=answer) as (server, connection):
        assert await connection.listed() == []
    assert server.asked.count("tools/list") <= connections.MAX_LISTED


async def test_an_answer_that_is_none_spoils_no_other() -> None:
    async def answer(message: Value) -> Value:
        if message["params"]["name"] == "slow":
            await asyncio.sleep(1.0)
            return said("done")
        return result(content="no list")

    async with asked(tools_call=answer) as (_, connection):
        slow = asyncio.create_task(connection.call("slow", {}))
        await asyncio.sleep(0.3)
        with pytest.raises(ToolServerAway, match="no answer"):
            await connection.call("bad", {})
        assert text_of(await slow) == "done"
        assert connection.is_open


@pytest.mark.parametrize("is_cut", [True, False])
async def test_a_request_that_fails_on_its_way_spoils_no_other(is_cut: bool) -> None:
    """One is cut off, or gets no word within its time; another waits at the same server."""

    async def answer(message: Value) -> Value | bytes:
        if message["params"]["name"] == "slow":
            await asyncio.sleep(1.5)
            return said("done")
        if is_cut:
            raise ConnectionError
        await asyncio.sleep(60)
        return b""

    async with HostileServer({"tools/call": answer, "tools/list": _nothing}) as server:
        connection = ServerConnection(server.spec(timeout_s=2.0))
        await connection.listed()
        bad = asyncio.create_task(connection.call("bad", {}))
        await asyncio.sleep(1.0)
        slow = asyncio.create_task(connection.call("slow", {}))
        with pytest.raises(ToolServerAway):
            await bad
        assert text_of(await slow) == "done"
        await connection.close()


async def test_one_that_asks_for_streams_again_and_again() -> None:
    """Nobody here hears what a server has to say unasked."""
    session = "Mcp-Session-Id: s1"

    async def begin(message: Value) -> bytes:
        begun = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        value = {**begun, "serverInfo": {"name": "h", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode()
        return http(body, "Content-Type: application/json", session)

    async with asked(initialize=begin, tools_list=_nothing) as (server, connection):
        await connection.listed()
        await asyncio.sleep(0.3)
        assert "get" not in server.asked


async def test_events_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end with the bytes that an answer may have, also where nobody waits for it any more."""
    monkeypatch.setattr("chat.tools.servers.bounded.MAX_ANSWER_BYTES", 100_000)
    notice = {"method": "notifications/message", "params": {"level": "info", "data": 1}}
    event = json.dumps({"jsonrpc": "2.0", **notice}).encode()
    piece = (b"data: " + event + b"\n\n") * 100

    async def answer(_: Value) -> bytes:
        return EVENTS + (b"%x\r\n" % len(piece) + piece + b"\r\n") * 50

    async with asked(tools_call=answer, tools_list=_nothing) as (_, connection):
        with pytest.raises(ToolServerAway):
            await asyncio.wait_for(connection.call("t", {}), 4.0)
        assert connection.is_open or not connection.problem
        assert await connection.listed() == []


async def test_who_stops_while_it_connects_leaves_nothing_behind() -> None:
    async def slowly(_: Value) -> Value:
        await asyncio.sleep(0.5)
        return {"error": {"code": -32601, "message": "no such method"}}

    async with asked(**{"server_discover": slowly, "tools_list": _nothing}) as (server, connection):
        stopped = asyncio.create_task(connection.listed())
        await asyncio.sleep(0.2)
        stopped.cancel()
        await asyncio.wait([stopped])
        assert await connection.listed() == []
        assert server.asked.count("initialize") == 1
    assert not [one for one in asyncio.all_tasks() if one.get_name() == "tools of a"]


def of_python(code: str, **others: Any) -> ToolServerSpec:
    return ToolServerSpec("a", "a", command=sys.executable, args=("-c", code), **others)


BEGINS = """
import json, sys
def say(id, **values): print(json.dumps({"jsonrpc": "2.0", "id": id, **values}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        say(asked["id"], result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "h", "version": "1"}})
    elif asked["method"] == "tools/list":
        %s
    elif "id" in asked:
        say(asked["id"], error={"code": -32601, "message": "no"})
"""


async def test_a_line_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.tools.servers.child.MAX_ANSWER_BYTES", 1_000_000)
    connection = ServerConnection(of_python(BEGINS % "while True: sys.stdout.write('x' * 65536)"))
    with pytest.raises(ToolServerAway, match="broke"):
        await asyncio.wait_for(connection.listed(), 10.0)
    await connection.close()


async def test_a_child_that_prints_and_chatters_is_heard_all_the_same() -> None:
    chatter = '{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}'
    code = f"[print(t) for t in ['Hello.', '{chatter}'] * 150]; say(asked['id'], result={{'tools': []}})"
    connection = ServerConnection(of_python(BEGINS % code))
    assert await connection.listed() == []
    await connection.close()


async def test_a_child_that_will_not_end_is_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    after = "\nimport time; time.sleep(60)"
    code = deaf + BEGINS % "say(asked['id'], result={'tools': []})" + after
    connection = ServerConnection(of_python(code))
    await connection.listed()
    before_s = monotonic()
    await connection.close()
    assert monotonic() - before_s < 5.0
    assert not [one for one in asyncio.all_tasks() if one.get_name() == "tools of a"]


def test_a_child_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Also one that hangs, and does not see that its input has ended."""
    log = tmp_path / "pid"
    hangs = f"open({str(log)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    child = "import os, time\n" + BEGINS % hangs
    code = f"""
import asyncio, sys
from chat.tools.servers.connection import ServerConnection
from chat.tools.servers.spec import ToolServerSpec
spec = ToolServerSpec("a", "a", command=sys.executable, args=("-c", {child!r}))
asyncio.run(ServerConnection(spec).listed())
"""
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root) as parent:
        wait_until(lambda: log.exists() and bool(log.read_text()), what="the child")
        parent.kill()
    place = Path(f"/proc/{log.read_text()}")
    wait_until(lambda: not place.exists(), what="its end")


async def test_reconnecting_leaves_no_files_open(tmp_path: Any) -> None:
    def num_open() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    connection = ServerConnection(of_python("raise SystemExit('no paper')"))
    numbers = []
    for _ in range(6):
        connection._not_before_s = 0.0
        with pytest.raises(ToolServerAway):
            await connection.listed()
        await asyncio.sleep(0.05)
        numbers.append(num_open())
    assert numbers[-1] <= numbers[1]


async def test_secrets_are_told_to_nobody() -> None:
    """Nor to the console: libraries and servers quote what they are given."""
    secret = "hush-hush-1"
    spec = of_python(
        "import os; raise SystemExit('bad key ' + os.environ['KEY'])", env=(("KEY", secret),)
    )
    over_http = ToolServerSpec(
        "a", "a", url=f"http://127.0.0.1:9/?key={secret}", headers=(("A", f"Bearer {secret}\n"),)
    )
    for one in (spec, over_http):
        connection = ServerConnection(one)
        with pytest.raises(ToolServerAway) as caught:
            await connection.listed()
        assert str(caught.value) == "a cannot be reached"
        assert connection.problem.startswith("a cannot be reached: ")
        assert secret not in connection.problem
        await connection.close()
