"""A conversation in Anthropic's words, asked of a server that speaks them."""

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from inference import ChatRequest, Failed, Finished, UpstreamUpdate, Usage
from tests.inference.far import Far, spec_of, text_of
from tests.upstream_server import UpstreamServer, events

CONVERSATION = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What time is it?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": {}}},
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "clock", "arguments": '{"a": 1}'},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "noon"},
    {"role": "tool", "tool_call_id": "c2", "content": "one"},
    {"role": "user", "content": "And now?"},
)
CLOCK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "clock", "parameters": {"type": "object"}},
}


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    with UpstreamServer() as server:
        yield server


async def ask_anthropic(
    server: UpstreamServer, models_dir: Path, tool: Any = CLOCK, **options: Any
) -> list[UpstreamUpdate]:
    server.answers = [
        events(
            {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
            {"type": "content_block_start", "content_block": {"type": "text"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Noon."}},
            {"type": "content_block_stop"},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "max_tokens"},
                "usage": {"output_tokens": 2},
            },
        )
    ]
    far = Far(spec_of(server, scheme="anthropic+"), models_dir)
    request = ChatRequest("r1", "far", CONVERSATION, (tool,), options)
    try:
        async with aclosing(far.engine.chat(request)) as updates:
            return [update async for update in updates]
    finally:
        await far.engine.close()


async def test_a_conversation_in_anthropics_words(server: UpstreamServer, tmp_path: Path) -> None:
    updates = await ask_anthropic(
        server, tmp_path, stop=["END"], tool_choice="required", parallel_tool_calls=False
    )
    assert text_of(updates) == "Noon."
    assert isinstance(updates[-1], Finished)
    assert updates[-1].reason == "length"
    asked = server.asked[0]
    assert asked.path == "/v1/messages"
    assert asked.header("x-api-key") == "sk-1"
    body = asked.body
    assert body["system"] == "Be brief."
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [b["type"] for b in body["messages"][1]["content"]] == ["tool_use", "tool_use"]
    assert [b["input"] for b in body["messages"][1]["content"]] == [{}, {"a": 1}]
    assert [b["type"] for b in body["messages"][2]["content"]] == [
        "tool_result",
        "tool_result",
        "text",
    ]
    assert body["stop_sequences"] == ["END"]
    assert body["max_tokens"] > 0
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert body["tools"][0]["input_schema"] == {"type": "object"}
    assert "strict" not in body["tools"][0]


async def test_past_calls_are_defined_where_no_tools_are_offered(
    server: UpstreamServer, tmp_path: Path
) -> None:
    """Anthropic's servers refuse messages with calls of tools that they are not told of."""
    server.answers = [events({"type": "message_stop"})]
    far = Far(spec_of(server, scheme="anthropic+"), tmp_path)
    try:
        async with aclosing(far.engine.chat(ChatRequest("r", "far", CONVERSATION))) as updates:
            assert [update async for update in updates]
    finally:
        await far.engine.close()
    assert [tool["name"] for tool in server.asked[0].body["tools"]] == ["clock"]
    assert server.asked[0].body["tool_choice"] == {"type": "none"}


async def test_a_strict_tool_stays_strict(server: UpstreamServer, tmp_path: Path) -> None:
    strict = {**CLOCK, "function": {**CLOCK["function"], "strict": True}}
    await ask_anthropic(server, tmp_path, tool=strict)
    assert server.asked[0].body["tools"][0]["strict"] is True


async def test_what_anthropic_cannot_say_is_named(server: UpstreamServer, tmp_path: Path) -> None:
    end = (await ask_anthropic(server, tmp_path, logit_bias={"1": 2}))[-1]
    assert isinstance(end, Failed)
    assert (end.code, end.param) == ("invalid_parameter", "logit_bias")
    assert not server.asked


async def test_a_stop_keeps_what_was_counted_at_the_beginning(
    server: UpstreamServer, tmp_path: Path
) -> None:
    counted = {"input_tokens": 700, "cache_read_input_tokens": 300, "output_tokens": 1}
    word = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "word "}}
    begin = {"type": "message_start", "message": {"usage": counted}}
    server.answers = [events(begin, *[word] * 400, pause_s=0.02)]
    far = Far(spec_of(server, scheme="anthropic+"), tmp_path)
    said = ""
    try:
        async with aclosing(far.engine.chat(ChatRequest("r1", "far", CONVERSATION))) as updates:
            async for update in updates:
                said += text_of([update])
                if len(said) >= len("word word word "):
                    far.engine.abort("far", "r1")
    finally:
        await far.engine.close()
    assert isinstance(update, Finished)
    assert update.usage == Usage(1000, 300, len(said) // 3)
