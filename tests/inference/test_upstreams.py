"""Models on other servers: asked, asked again elsewhere, stopped; nothing is said twice."""

import asyncio
from contextlib import aclosing
from pathlib import Path
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
)
from tests.inference.far import HELLO, Far, spec_of, text_of
from tests.upstream_server import UpstreamServer, chunk, events, status, texts


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


async def test_counts_that_no_ledger_holds_are_not_believed(
    server: UpstreamServer, far: Far
) -> None:
    huge = {"prompt_tokens": 10**30, "completion_tokens": True}
    said = [chunk(content="Hello there."), chunk("stop"), {"choices": [], "usage": huge}, "[DONE]"]
    server.answers = [events(*said)]
    end = (await far.ask("x" * 30))[-1]
    assert isinstance(end, Finished)
    assert end.usage == Usage(10, 0, 4), "about"


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


async def test_a_stop_hangs_up_and_is_told(server: UpstreamServer, far: Far) -> None:
    server.answers = [events(*texts(*["word "] * 400), pause_s=0.02)]
    request = ChatRequest("r1", "far", ({"role": "user", "content": "Hi"},))
    said = ""
    async with aclosing(far.engine.chat(request)) as updates:
        async for update in updates:
            said += text_of([update])
            if len(said) >= len("word word word "):
                far.engine.abort("far", "r1")
    assert isinstance(update, Finished)
    assert update.reason == "abort"
    assert 0 < update.timings.stop_ms < 1000
    assert said == "word " * (len(said) // 5)
    assert len(said) < len("word ") * 50
    assert update.usage.completion_tokens == len(said) // 3


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
