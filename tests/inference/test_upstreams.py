"""Models on other servers: asked, asked again elsewhere, stopped; nothing is said twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Barrier
from time import monotonic
from typing import Any

import pytest

from inference import (
    Asked,
    Call,
    ChatRequest,
    Failed,
    Finished,
    GenerateRequest,
    Reasoning,
    Said,
    SamplingParams,
    Text,
    UnknownModel,
    Usage,
    parse_upstream,
)
from inference.upstreams import replicas, upstream
from tests.inference.far import Far, spec_of, text_of
from tests.upstream_server import UpstreamServer, chunk, events, status, stream, texts, wired

HELLO = events(*texts("Hel", "lo."))


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    with UpstreamServer([HELLO]) as server:
        yield server


@pytest.fixture
def other() -> Iterator[UpstreamServer]:
    with UpstreamServer([HELLO]) as server:
        yield server


@pytest.fixture
async def far(server: UpstreamServer, tmp_path: Path) -> AsyncIterator[Far]:
    far = Far(spec_of(server), tmp_path)
    yield far
    await far.engine.close()


@pytest.fixture
async def pair(server: UpstreamServer, other: UpstreamServer, tmp_path: Path) -> AsyncIterator[Far]:
    far = Far(spec_of(server, other), tmp_path)
    yield far
    await far.engine.close()


async def test_an_answer_comes_in_pieces_with_its_counts(server: UpstreamServer, far: Far) -> None:
    updates = await far.ask(options={"temperature": 0.5, "max_tokens": 9})
    assert updates[:3] == [Asked(server.host), Said((Text("Hel"),)), Said((Text("lo."),))]
    end = updates[-1]
    assert isinstance(end, Finished)
    assert end.reason == "stop"
    assert (end.usage.prompt_tokens, end.usage.cached_tokens) == (11, 4)
    assert end.usage.completion_tokens == 2
    assert end.timings.ttft_ms > 0
    asked = server.asked[0]
    assert asked.path == "/v1/chat/completions"
    assert asked.header("authorization") == "Bearer sk-1"
    assert asked.body["model"] == "their-model"
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.5, 9)
    assert asked.body["messages"] == [{"role": "user", "content": "Hi"}]


async def test_thoughts_and_calls_are_told_apart(server: UpstreamServer, far: Far) -> None:
    call = {"index": 0, "function": {"name": "clock", "arguments": "{}"}}
    server.answers = [
        events(chunk(content="<think>Hm.</think>"), chunk(tool_calls=[call]), chunk("tool_calls"))
    ]
    updates = await far.ask()
    segments = [s for u in updates if isinstance(u, Said) for s in u.segments]
    assert segments == [Reasoning("Hm."), Call("clock", "{}")]


@pytest.mark.parametrize(
    "broken",
    [
        status(500, {"error": {"message": "boom"}}),
        status(529),
        status(429, {"error": {"message": "wait"}}, Retry_After="0.1"),
        events(is_cut=True),
        events(chunk(role="assistant")),
        events({"error": {"message": "out of memory"}}),
    ],
)
async def test_before_the_first_token_another_server_is_asked(
    server: UpstreamServer, other: UpstreamServer, pair: Far, broken: Any
) -> None:
    server.answers = [broken]
    updates = await pair.ask()
    assert text_of(updates) == "Hello."
    assert isinstance(updates[-1], Finished)
    assert (len(server.asked), len(other.asked)) == (1, 1)


async def test_one_server_is_asked_again(server: UpstreamServer, far: Far) -> None:
    server.answers = [status(503), HELLO]
    assert text_of(await far.ask()) == "Hello."


async def test_what_was_said_is_not_said_again(server: UpstreamServer, far: Far) -> None:
    server.answers = [events(chunk(content="Half of"), is_cut=True), HELLO]
    updates = await far.ask()
    assert text_of(updates) == "Half of"
    assert isinstance(updates[-1], Failed)
    assert updates[-1].code == "upstream_unavailable"
    assert len(server.asked) == 1


async def test_a_server_that_can_goes_on_behind_what_was_said(
    server: UpstreamServer, other: UpstreamServer, tmp_path: Path
) -> None:
    far = Far(spec_of(server, other, options="&continue=vllm"), tmp_path)
    server.answers = [events(chunk(content="Half of"), is_cut=True)]
    other.answers = [events(*texts(" it is", " here."))]
    try:
        assert text_of(await far.ask()) == "Half of it is here."
    finally:
        await far.engine.close()
    body = other.asked[0].body
    assert body["messages"][-1] == {"role": "assistant", "content": "Half of"}
    assert body["continue_final_message"]
    assert not body["add_generation_prompt"]


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


@pytest.mark.parametrize(("max_tokens", "num_asked"), [(500, 1), (100, 0)])
async def test_what_was_said_before_counts(
    server: UpstreamServer, other: UpstreamServer, tmp_path: Path, max_tokens: int, num_asked: int
) -> None:
    """An answer that goes on is not longer than was asked for: 400 bytes count as 133 tokens."""
    far = Far(spec_of(server, other, options="&continue=prefix"), tmp_path)
    server.answers = [events(chunk(content="abc " * 100), is_cut=True)]
    usage = {"prompt_tokens": 110, "completion_tokens": 7}
    other.answers = [events(chunk(content="def"), chunk("length"), {"choices": [], "usage": usage})]
    try:
        end = (await far.ask(options={"max_tokens": max_tokens}))[-1]
    finally:
        await far.engine.close()
    assert isinstance(end, Finished)
    assert end.reason == "length"
    assert [asked.body["max_tokens"] for asked in other.asked] == [367] * num_asked
    assert end.usage.completion_tokens == 133 + 7 * num_asked


async def test_white_space_is_not_said_twice(
    server: UpstreamServer, other: UpstreamServer, tmp_path: Path
) -> None:
    """A protocol that takes none at the end of what is to go on makes the server begin with it."""
    far = Far(spec_of(server, other, options="&continue=prefix"), tmp_path)
    server.answers = [events(chunk(content="One \n\n"), is_cut=True)]
    other.answers = [events(*texts(" \n", "\nTwo", " three"))]
    try:
        assert text_of(await far.ask()) == "One \n\nTwo three"
    finally:
        await far.engine.close()


def test_many_failures_at_once_are_one_rest() -> None:
    """Of thirteen answers that one crash broke off, ten tell nothing new."""
    servers = replicas.Replicas(("http://x",))
    for _ in range(13):
        servers.all[0].failed()
    assert servers.all[0].num_failures == replicas.MAX_FAILURES
    assert 0 < servers.rest_s <= replicas.FIRST_REST_S


async def test_a_long_answer_hides_nothing_that_others_hear(
    server: UpstreamServer, far: Far
) -> None:
    """Who was told to wait does so, and failures in a row stay in a row."""
    replica = far.engine._upstream("far").replicas.all[0]
    full = status(429, {"error": {"message": "wait"}}, Retry_After="1.5")
    server.answers = [events(*texts(*["word "] * 120), pause_s=0.02), full, status(500), HELLO]
    long_one = asyncio.create_task(far.ask())
    while not replica.num_running or not server.asked:  # noqa: ASYNC110  in another thread
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    since_s = monotonic()
    others = asyncio.create_task(far.ask())
    while not replica.num_failures:  # noqa: ASYNC110  set by the third answer
        await asyncio.sleep(0.01)
    assert monotonic() - since_s >= 1.5
    await asyncio.sleep(0.1)
    assert replica.num_failures == 1, "five words later"
    assert text_of(await others) == "Hello."
    await long_one


def test_who_asks_for_a_busy_server_gets_it() -> None:
    servers = replicas.Replicas(("http://x",))
    servers.all[0].is_busy_for(30.0)
    assert servers.are_resting
    servers.all[0].succeeded()
    assert servers.are_resting
    servers.try_again()
    assert not servers.are_resting


async def test_a_server_that_speaks_again_is_back_at_once(server: UpstreamServer, far: Far) -> None:
    replica = far.engine._upstream("far").replicas.all[0]
    replica.num_failures = 3  # and its rest is over
    server.answers = [events(*texts(*["word "] * 100), pause_s=0.02), HELLO]
    long_one = asyncio.create_task(far.ask())
    while replica.num_failures:  # noqa: ASYNC110  until its first word
        await asyncio.sleep(0.01)
    assert text_of(await far.ask()) == "Hello."
    await long_one


async def test_who_finds_all_servers_on_trial_waits(
    server: UpstreamServer, other: UpstreamServer, pair: Far
) -> None:
    slow = stream("", *wired(*texts("Hel", "lo.")), pause_s=0.4)
    for one, replica in zip(
        (server, other), pair.engine._upstream("far").replicas.all, strict=True
    ):
        one.answers = [slow]
        replica.num_failures = 3  # and its rest is over
    for updates in await asyncio.gather(*(pair.ask() for _ in range(4))):
        assert text_of(updates) == "Hello."


IDLE = [": keep-alive\n\n", "event: ping\n\n"] * 100


@pytest.mark.parametrize(
    "silent", [events(hangs_s=20), stream(*IDLE, pause_s=0.1)], ids=["nothing", "comments"]
)
async def test_a_silent_server_is_left(
    server: UpstreamServer,
    other: UpstreamServer,
    tmp_path: Path,
    silent: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upstream, "MAX_PINGED", 1)
    far = Far(spec_of(server, other, options="&timeout=1"), tmp_path)
    server.answers = [silent]
    try:
        assert text_of(await asyncio.wait_for(far.ask(), 10)) == "Hello."
    finally:
        await far.engine.close()


async def test_a_slow_server_is_not_silent(
    server: UpstreamServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may take longer than any silence in it, and its end needs no goodbye."""
    monkeypatch.setattr(upstream, "MAX_PINGED", 1)
    far = Far(spec_of(server, options="&timeout=1"), tmp_path)
    said = wired(*[chunk(content="word ")] * 4, chunk("stop"))
    server.answers = [stream(*said, *IDLE, pause_s=0.4)]
    try:
        updates = await asyncio.wait_for(far.ask(), 10)
    finally:
        await far.engine.close()
    assert text_of(updates) == "word " * 4
    assert isinstance(updates[-1], Finished)
    assert len(server.asked) == 1


async def test_servers_that_fail_rest_and_come_back(
    server: UpstreamServer, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "FIRST_REST_S", 30.0)
    server.answers = [status(500)]
    end = (await far.ask())[-1]
    assert isinstance(end, Failed)
    assert len(server.asked) == replicas.MAX_FAILURES
    assert far.engine.state("far").state == "failed"
    end = (await far.ask())[-1]
    assert isinstance(end, Failed)
    assert end.code == "upstream_unavailable"
    assert end.retry_after_s is not None
    assert 0 < end.retry_after_s <= 30
    assert len(server.asked) == replicas.MAX_FAILURES, "it was left alone"
    server.answers = [HELLO]
    far.engine.load("far")
    assert text_of(await far.ask()) == "Hello."
    assert far.engine.state("far").state == "ready"


async def test_a_rest_is_waited_for_once(
    server: UpstreamServer, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many ask meanwhile; and not beyond the engine's end."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    upstream = far.engine._upstream("far")

    def call_later(delay_s: float, call: Any, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        timer = type(loop).call_later(loop, delay_s, call, *args, **kwargs)
        if call == upstream.tell_if_changed:
            timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", call_later)
    upstream.replicas.all[0].is_busy_for(30.0)
    for _ in range(5):
        assert isinstance((await far.ask())[-1], Failed)
    assert [timer.cancelled() for timer in timers] == [True] * 4 + [False]
    assert far.engine.state("far").state == "failed"
    await far.engine.close()
    assert timers[-1].cancelled()


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    spec = parse_upstream("far=http://127.0.0.1:9/v1", lambda _: None)
    far = Far(spec, tmp_path)
    try:
        end = (await far.ask())[-1]
    finally:
        await far.engine.close()
    assert isinstance(end, Failed)
    assert end.code == "upstream_unavailable"
    assert "127.0.0.1:9" in end.message


async def test_the_least_busy_server_is_asked(
    server: UpstreamServer, other: UpstreamServer, pair: Far
) -> None:
    slow = events(*texts(*["."] * 10), pause_s=0.05)
    server.answers, other.answers = [slow], [slow]
    await asyncio.gather(*(pair.ask() for _ in range(8)))
    assert (len(server.asked), len(other.asked)) == (4, 4)


async def test_a_stop_hangs_up_and_is_told(server: UpstreamServer, far: Far) -> None:
    server.answers = [events(*texts(*["word "] * 400), pause_s=0.02)]
    request = ChatRequest("r1", "far", ({"role": "user", "content": "Hi"},))
    said = 0
    async with aclosing(far.engine.chat(request)) as updates:
        async for update in updates:
            said += isinstance(update, Said)
            if said == 3:
                far.engine.abort("far", "r1")
    assert isinstance(update, Finished)
    assert update.reason == "abort"
    assert 0 < update.timings.stop_ms < 1000
    assert said < 50
    assert update.usage.completion_tokens == len("word " * said) // 3


async def test_what_a_server_does_not_count_is_estimated(server: UpstreamServer, far: Far) -> None:
    server.answers = [
        events(chunk(content="<think>Hm.</think>"), *[chunk(content="word ")] * 9, "[DONE]")
    ]
    end = (await far.ask("What is it? " * 10))[-1]
    assert isinstance(end, Finished)
    assert end.usage == Usage(120 // 3, 0, (3 + 45) // 3)


async def test_leaving_the_iterator_hangs_up(server: UpstreamServer, far: Far) -> None:
    server.answers = [events(*texts(*["word "] * 400), pause_s=0.02)]
    request = ChatRequest("r1", "far", ({"role": "user", "content": "Hi"},))
    async with aclosing(far.engine.chat(request)) as updates:
        async for update in updates:
            if isinstance(update, Said):
                break
    replica = far.engine._upstream("far").replicas.all[0]
    assert replica.num_running == 0


async def test_closing_the_engine_ends_what_runs(server: UpstreamServer, far: Far) -> None:
    server.answers = [events(hangs_s=20)]
    asking = asyncio.create_task(far.ask())
    while not server.asked:  # noqa: ASYNC110  the server lives in another thread
        await asyncio.sleep(0.01)
    await far.engine.close()
    end = (await asking)[-1]
    assert isinstance(end, Failed)
    assert end.code == "engine_closed"


async def test_models_know_their_own_door(far: Far) -> None:
    assert far.engine.is_upstream("far")
    assert not far.engine.is_upstream("vitrine-small")
    with pytest.raises(UnknownModel):
        far.engine.generate(GenerateRequest("r", "far", (1,), SamplingParams(1)))
    with pytest.raises(UnknownModel):
        far.engine.chat(ChatRequest("r", "vitrine-small", ()))


async def test_workers_are_told_no_keys(far: Far) -> None:
    assert far.engine._host("vitrine-small").config.upstreams == ()
