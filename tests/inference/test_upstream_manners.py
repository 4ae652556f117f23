"""What other servers say in the place of a plain stream: errors, pages, whole answers, nothing."""

import asyncio
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from inference import (
    Call,
    ChatRequest,
    Failed,
    Finished,
    Said,
    Text,
    Usage,
)
from tests.inference.far import HELLO, Far, spec_of, text_of
from tests.upstream_server import UpstreamServer, chunk, events, status, stream, texts, wired


@pytest.mark.parametrize(
    ("answer", "code", "param"),
    [
        (status(400, {"error": {"message": "no", "param": "top_k"}}), "invalid_parameter", "top_k"),
        (status(401, {"error": {"message": "Incorrect key sk-1"}}), "upstream_error", None),
        (status(404, {"error": {"message": "no model"}}), "upstream_error", None),
        (
            status(400, {"error": {"code": "context_length_exceeded", "message": "9 of 8"}}),
            "context_length_exceeded",
            None,
        ),
        (events({"error": {"message": "bad temp", "code": 400}}), "invalid_request", None),
        (events("[not json"), "upstream_error", None),
        (events({"choices": "none"}), "upstream_error", None),
        (events(chunk("stop")), "upstream_error", None),
        (status(301, None, Location="http://elsewhere.example/"), "upstream_error", None),
    ],
)
async def test_a_refusal_is_told_and_not_asked_again(
    server: UpstreamServer, far: Far, answer: Any, code: str, param: str | None
) -> None:
    server.answers = [answer]
    updates = await far.ask()
    end = updates[-1]
    assert isinstance(end, Failed)
    assert (end.code, end.param) == (code, param)
    assert "sk-1" not in end.message
    assert len(server.asked) == 1
    assert far.engine.state("far").state == "ready", "it answers"


@pytest.mark.parametrize(
    "event",
    [
        "[" * 100_000,
        '{"choices": [{"delta": {"tool_calls": [{"index": 1e999, "function": 5}]}}]}',
        {"choices": [5]},
        {"error": {"message": {"deep": ["sk-1"]}}},
        {"usage": "many", "choices": None},
        chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": '{"a":' * 5000}}]),
    ],
)
async def test_whatever_a_server_says_there_is_an_end(
    server: UpstreamServer, far: Far, event: Any
) -> None:
    server.answers = [events(event, chunk("stop"))]
    end = (await asyncio.wait_for(far.ask(), 20))[-1]
    assert isinstance(end, Finished | Failed)
    assert "sk-1" not in str(end)


@pytest.mark.parametrize("scheme", ["", "anthropic+"])
@pytest.mark.parametrize("idle", ["retry: 3000", "id: 1", "event: ping", "data:", "data:  "])
async def test_events_without_data_say_nothing(
    server: UpstreamServer, tmp_path: Path, scheme: str, idle: str
) -> None:
    far = Far(spec_of(server, scheme=scheme), tmp_path)
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello."}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    said = [delta, end, {"type": "message_stop"}] if scheme else texts("Hel", "lo.")
    server.answers = [stream(*(f"{idle}\n\n{event}" for event in wired(*said)))]
    try:
        updates = await far.ask()
    finally:
        await far.engine.close()
    assert text_of(updates) == "Hello."
    assert isinstance(updates[-1], Finished)
    assert len(server.asked) == 1


async def test_a_byte_order_mark_is_no_part_of_the_first_event(
    server: UpstreamServer, far: Far
) -> None:
    server.answers = [stream("\ufeff", *wired(*texts("Hel", "lo. \ufeff")))]
    assert text_of(await far.ask()) == "Hello. \ufeff"


@pytest.mark.parametrize("kind", ["", "text/plain; charset=latin-1", "application/octet-stream"])
async def test_events_may_come_as_another_type(server: UpstreamServer, far: Far, kind: str) -> None:
    server.answers = [stream(*wired(*texts("Grü", "ße 🙂")), kind=kind)]
    assert text_of(await far.ask()) == "Grüße 🙂"


async def test_a_page_is_no_answer(server: UpstreamServer, far: Far) -> None:
    server.answers = [stream(*wired(*texts("Hello.")), kind="text/html")]
    updates = await far.ask()
    assert isinstance(updates[-1], Failed)
    assert len(server.asked) == 1


OPENAIS_WHOLE = {
    "choices": [
        {
            "message": {
                "content": "Hello.",
                "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
            },
            "finish_reason": "length",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5},
}


ANTHROPICS_WHOLE = {
    "type": "message",
    "content": [
        {"type": "text", "text": "Hello."},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ],
    "stop_reason": "max_tokens",
    "usage": {"input_tokens": 3, "output_tokens": 5},
}


@pytest.mark.parametrize(
    ("scheme", "body"), [("", OPENAIS_WHOLE), ("anthropic+", ANTHROPICS_WHOLE)]
)
async def test_an_answer_may_come_whole(
    server: UpstreamServer, tmp_path: Path, scheme: str, body: Any
) -> None:
    """A server, or a proxy before it, that streams nothing whatever it is asked."""
    far = Far(spec_of(server, scheme=scheme), tmp_path)
    server.answers = [status(200, body, Content_Type="application/json; charset=utf-8")]
    try:
        *said, end = await far.ask()
    finally:
        await far.engine.close()
    assert isinstance(end, Finished)
    assert (end.reason, end.usage) == ("length", Usage(3, 0, 5))
    segments = [s for update in said if isinstance(update, Said) for s in update.segments]
    assert segments == [Text("Hello."), Call("f", "{}")]


@pytest.mark.parametrize("scheme", ["", "anthropic+"])
async def test_an_error_may_come_as_a_success(
    server: UpstreamServer, tmp_path: Path, scheme: str
) -> None:
    far = Far(spec_of(server, scheme=scheme), tmp_path)
    error = {"type": "error", "error": {"message": "prompt is too long", "code": 400}}
    server.answers = [status(200, error, Content_Type="application/json")]
    try:
        end = (await far.ask())[-1]
    finally:
        await far.engine.close()
    assert isinstance(end, Failed)
    assert end.code == "context_length_exceeded"


async def test_an_event_may_be_long(server: UpstreamServer, far: Far) -> None:
    """A call that writes a file, say: some servers hand it over whole."""
    server.answers = [events(*texts("x" * 2**21))]
    assert len(text_of(await far.ask())) == 2**21


async def test_a_server_that_does_not_know_how_to_count_is_not_asked_to(
    server: UpstreamServer, far: Far
) -> None:
    """Mistral's API refuses whatever it does not know."""
    detail = [{"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"]}]
    both = Barrier(2, timeout=20)

    def refused(handler: BaseHTTPRequestHandler) -> None:
        both.wait()
        status(422, {"object": "error", "message": {"detail": detail}})(handler)

    server.answers = [refused, refused, HELLO]
    answers = await asyncio.gather(far.ask(), far.ask())
    assert [text_of(updates) for updates in answers] == ["Hello."] * 2
    assert text_of(await far.ask()) == "Hello."
    told = ["stream_options" in asked.body for asked in server.asked]
    assert told == [True, True, False, False, False], "it is remembered"
    server.answers = [status(422, {"error": "stream_options: never"})]
    assert isinstance((await far.ask())[-1], Failed)
    assert len(server.asked) == 6, "what helps nothing is not tried again"


async def test_an_error_page_of_any_depth_is_an_error(server: UpstreamServer, far: Far) -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    server.answers = [status(400, deep)]
    assert isinstance((await asyncio.wait_for(far.ask(), 20))[-1], Failed)


async def test_a_stop_before_anything_was_done_is_told(server: UpstreamServer, far: Far) -> None:
    updates = far.engine.chat(ChatRequest("r1", "far", ({"role": "user", "content": "Hi"},)))
    first = asyncio.ensure_future(anext(updates))
    await asyncio.sleep(0)  # the request is there, its task has not run
    far.engine.abort("far", "r1")
    end = await asyncio.wait_for(first, 5)
    assert isinstance(end, Finished)
    assert end.reason == "abort"
    assert end.usage == Usage()
    await updates.aclose()


@pytest.mark.parametrize(
    "stream",
    [
        events(chunk(content="All."), chunk("stop"), is_cut=True),
        events(chunk(content="All."), chunk("stop"), "[DONE]", hangs_s=20),
        events(chunk(content="All."), "[DONE]"),
        events(chunk(content="All."), chunk("stop"), "Goodbye."),
    ],
)
async def test_an_answer_that_is_whole_is_not_asked_for_again(
    server: UpstreamServer, tmp_path: Path, stream: Any
) -> None:
    far = Far(spec_of(server, options="&continue=prefix"), tmp_path)
    server.answers = [stream, HELLO]
    try:
        updates = await asyncio.wait_for(far.ask(), 10)
    finally:
        await far.engine.close()
    assert text_of(updates) == "All."
    assert isinstance(updates[-1], Finished)


THOUGHT = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 50}}


STOPPED = {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "#"}}


@pytest.mark.parametrize(
    ("scheme", "stream", "reason", "usage"),
    [
        ("", events(chunk("length", content=""), THOUGHT, "[DONE]"), "length", Usage(5, 0, 50)),
        ("", events(chunk("length"), "[DONE]"), "length", None),
        ("", events(chunk("stop"), THOUGHT, "[DONE]"), "stop", Usage(5, 0, 50)),
        ("anthropic+", events(STOPPED, {"type": "message_stop"}), "stop", None),
    ],
)
async def test_an_answer_may_have_nothing_to_show(
    server: UpstreamServer,
    tmp_path: Path,
    *,
    scheme: str,
    stream: Any,
    reason: str,
    usage: Usage | None,
) -> None:
    """A model that hides its thoughts has spent them all, or began with a stop string."""
    far = Far(spec_of(server, scheme=scheme), tmp_path)
    server.answers = [stream]
    try:
        end = (await far.ask(options={"stop": ["#"]}))[-1]
    finally:
        await far.engine.close()
    assert isinstance(end, Finished)
    assert end.reason == reason
    assert usage in (None, end.usage)
