"""`python -m benchmarks.api --peers`, with stand-ins: what it asks, whom, and what its rows say."""

import asyncio
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from benchmarks.api import peers
from benchmarks.api.client import Caller, Endpoint
from benchmarks.api.rounds import Round, System, by_turns
from benchmarks.api.rows import ratios, row
from benchmarks.api.server import Server, clean_environment
from benchmarks.chat.scripted import loop
from tests.sites import free_port

NUM_TOKENS = 5
TEXT = loop.text_of(NUM_TOKENS)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with peers.running_upstream(tmp_path_factory.mktemp("bench")) as system:
        yield system


@contextmanager
def stand_in(_programs: Path, folder: Path, before: Endpoint) -> Iterator[System]:
    """A peer that says what is behind it without asking it."""
    with peers.running_upstream(folder) as system:
        assert system.endpoint.port != before.port
        yield System("Stand-in", system.endpoint, system.parts)


def test_the_upstream_streams_as_openai_does(upstream: System) -> None:
    url = f"http://127.0.0.1:{upstream.endpoint.port}/v1"
    with OpenAI(base_url=url, api_key="none") as client:
        assert [model.id for model in client.models.list()] == [upstream.endpoint.model]
        stream = client.chat.completions.create(
            model="scripted",
            messages=[{"role": "user", "content": "Hello."}],
            max_tokens=NUM_TOKENS,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    assert len({chunk.id for chunk in chunks}) == 1
    *told, last = chunks
    choices = [chunk.choices[0] for chunk in told]
    assert choices[0].delta.role == "assistant"
    assert "".join(choice.delta.content or "" for choice in choices) == TEXT
    assert [choice.finish_reason for choice in choices] == [None] * (NUM_TOKENS + 1) + ["stop"]
    assert last.choices == []
    assert last.usage
    assert last.usage.completion_tokens == NUM_TOKENS


def test_a_connection_is_kept_and_ends_when_it_is_asked_to(upstream: System) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", upstream.endpoint.port, timeout=30)
    connection.request("GET", "/nowhere")
    missing = connection.getresponse()
    assert (missing.status, json.load(missing)["error"]["message"]) == (404, "No /nowhere.")
    own_socket = connection.sock
    body = json.dumps({"model": "scripted", "messages": [], "max_tokens": 1, "stream": True})
    connection.request("POST", upstream.endpoint.path, body, {"Connection": "close"})
    said = connection.getresponse().read()
    assert said.endswith(b"data: [DONE]\n\n")
    assert b'"usage"' not in said
    assert own_socket.recv(1) == b""
    connection.close()


def test_every_stream_is_asked_at_once_and_counted(upstream: System) -> None:
    found = upstream.measure(8, NUM_TOKENS)
    assert found.num_whole == 8
    assert found.ttft_ms is not None
    assert found.ttft_ms > 0
    assert set(found.cpu_us) == {"all"}


def test_no_two_requests_are_alike(upstream: System) -> None:
    questions = [Caller(upstream.endpoint, 1)._request for _ in range(2)]
    assert questions[0] != questions[1]


async def answered(raw: bytes) -> Caller:
    """A caller whose server said this."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        caller = Caller(Endpoint(server.sockets[0].getsockname()[1], "/", "m"), 1)
        await caller.ask()
        return caller


async def test_a_server_may_cut_its_chunks_anywhere() -> None:
    event = b'data: {"choices": [{"delta": {"content": "w0 "}}]}\n\ndata: [DONE]\n\n'
    parts = [event[:20], event[20:50], event[50:]]
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (await answered(head + body + b"0\r\n\r\n")).text == "w0 "


async def test_a_refusal_is_no_answer_and_can_be_read() -> None:
    caller = await answered(b"HTTP/1.1 401 Unauthorized\r\n\r\nno such key")
    assert caller.text == ""
    assert "no such key" in caller.response


def test_answers_that_are_cut_have_no_time(upstream: System) -> None:
    elsewhere = Endpoint(upstream.endpoint.port, "/nowhere", "m")
    found = System("broken", elsewhere, {}).measure(2, NUM_TOKENS)
    assert found == Round(None, {}, 0)
    with pytest.raises(AssertionError, match="No /nowhere"):
        System("broken", elsewhere, {}).warm()


def test_a_peer_is_started_from_the_environment_that_is_there(
    upstream: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(peers.PEERS, "stand-in", peers.Peer(("one==1", "two"), stand_in))
    environment = tmp_path / "environments" / "stand-in"
    environment.mkdir(parents=True)
    (environment / "installed.txt").write_text("one==1\ntwo")
    arguments = ("stand-in", environment.parent, tmp_path, upstream.endpoint)
    with peers.running_peer(*arguments) as (system, started):
        assert system.measure(2, NUM_TOKENS).num_whole == 2
    assert started["system"] == "Stand-in"
    assert started["processes"] == 1
    assert started["idle MiB"] > 1
    assert started["start to first answer s"] > 0


def test_an_environment_is_made_anew_for_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda words, **_: commands.append(words))
    place = tmp_path / "peer"
    place.mkdir()
    (place / "installed.txt").write_text("one==1")
    assert peers.programs_of("peer", ("one==2",), tmp_path) == place / "bin"
    assert commands[0][1:] == ["-m", "venv", str(place)]
    assert commands[1][1:] == ["install", "--quiet", "one==2"]
    peers.programs_of("peer", ("one==2",), tmp_path)
    assert len(commands) == 2


def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such port')"]
    server = Server(command, free_port(), tmp_path, clean_environment(tmp_path))
    with server, pytest.raises(AssertionError, match="no such port"):
        server.wait_for("/")


def test_nothing_of_ours_is_in_a_peers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "ours")
    own = clean_environment(tmp_path, PORT="1")
    assert own["PORT"] == "1"
    assert {"PYTHONPATH", "DATA_DIR", "DJANGO_SETTINGS_MODULE"}.isdisjoint(own)


def rounds(ttft_ms: float | None, cpu_us: float, num_whole: int = 2) -> list[Round]:
    """Three, around these."""
    return [
        Round(ttft_ms and ttft_ms + more, {"all": cpu_us + more}, num_whole) for more in (-1, 7, 0)
    ]


def test_rows_have_medians_and_ratios_are_against_each_peer() -> None:
    upstreams = rounds(10.0, 1.0)
    own = row("Vitrine", 2, rounds(30.0, 50.0), rounds(20.0, 5.0))
    peer = row("Peer", 2, rounds(50.0, 400.0, 1), upstreams)
    broken = row("Broken", 2, rounds(None, 400.0, 0), upstreams)
    assert own == {
        "system": "Vitrine",
        "streams": 2,
        "ttft ms p50": 30.0,
        "without ms": 20.0,
        "added ms": 10.0,
        "CPU µs/token": 50.0,
        "answers whole": "6/6",
    }
    assert (peer["added ms"], peer["answers whole"]) == (40.0, "3/6")
    assert (broken["added ms"], broken["answers whole"]) == (None, "0/6")
    quick = row("Quick", 2, rounds(9.0, 10.0), upstreams)
    rows = [own, peer, broken, quick]
    found: list[dict[str, Any]] = ratios(rows, ["Vitrine"], ["Peer", "Broken", "Quick"])
    assert found == [
        {"ratio": "Vitrine / Peer", "streams": 2, "added ms": 0.25, "CPU µs/token": 0.125},
        {"ratio": "Vitrine / Broken", "streams": 2, "added ms": None, "CPU µs/token": 0.125},
        {"ratio": "Vitrine / Quick", "streams": 2, "added ms": None, "CPU µs/token": 5.0},
    ]
    assert ratios([quick, peer], ["Quick"], ["Peer"])[0]["added ms"] is None


def test_rounds_go_by_turns() -> None:
    asked: list[tuple[str, int]] = []

    def measure(name: str, count: int) -> Round:
        asked.append((name, count))
        return Round(1.0, {"all": 1.0}, count)

    measures = {name: lambda count, name=name: measure(name, count) for name in ("ours", "peer")}
    found = by_turns(measures, 4, 2, pause_s=0.0)
    assert asked == [("ours", 4), ("peer", 4)] * 2
    assert {name: len(all_) for name, all_ in found.items()} == {"ours": 2, "peer": 2}
