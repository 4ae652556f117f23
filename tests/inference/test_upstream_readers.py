"""What other servers stream, as segments: the same for any chunking, and never an exception of ours."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import Call, Reasoning, Segment, Text
from inference.upstreams.anthropic_messages import AnthropicReader
from inference.upstreams.openai_chat import OpenAIReader
from inference.upstreams.problems import Problem, of_event, of_response
from inference.upstreams.thinking import ThinkingSplitter
from tests.inference.segments import joined
from tests.upstream_server import chunk

ANSWERS = [
    ("Hello.", [Text("Hello.")]),
    ("<think>First, <b>.</think>\n\nThen.", [Reasoning("First, <b>."), Text("Then.")]),
    ("  <think>\nHm\n</think>", [Reasoning("Hm")]),
    ("<thin air", [Text("<thin air")]),
    ("<think>cut </thi", [Reasoning("cut </thi")]),
    ("a <think>b</think>", [Text("a <think>b</think>")]),
    ("", []),
]


@given(data=st.data())
@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_thoughts_are_found_for_any_chunking(
    answer: str, expected: list[Segment], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(answer)), max_size=6).map(sorted))
    splitter = ThinkingSplitter()
    segments: list[Segment] = []
    for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True):
        segments += splitter.feed(answer[start:end])
    segments += splitter.finish()
    assert joined(segments) == expected


def read_openai(*chunks: Any) -> list[Segment]:
    reader = OpenAIReader("x")
    segments = [s for c in chunks for s in reader.read("message", json.dumps(c))]
    return joined([*segments, *reader.finish()])


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_answer_that_its_server_gave_up_is_not_whole(reason: str) -> None:
    with pytest.raises(Problem) as caught:
        read_openai(chunk(content="Half of"), chunk(reason))
    assert caught.value.kind == "down"


def piece(index: int, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function}


def test_calls_in_pieces_become_whole() -> None:
    segments = read_openai(
        chunk(reasoning="Look. "),
        chunk(reasoning_content="Yes."),
        chunk(content="One moment."),
        chunk(tool_calls=[piece(0, "add", '{"a": ')]),
        chunk(tool_calls=[piece(0, None, "1}"), piece(1, "clock")]),
        chunk("tool_calls"),
    )
    assert segments == [
        Reasoning("Look. Yes."),
        Text("One moment."),
        Call("add", '{"a": 1}'),
        Call("clock", "{}"),
    ]


def test_content_in_parts_is_text_and_thoughts() -> None:
    """Mistral's thinking models write so."""
    thoughts = [{"type": "text", "text": "Look. "}, {"type": "text", "text": "Yes."}]
    segments = read_openai(
        chunk(content=[{"type": "thinking", "thinking": thoughts}]),
        chunk(content=[{"type": "thinking", "thinking": " Go."}, {"type": "text", "text": "It "}]),
        chunk(content=[{"type": "reference", "reference_ids": [1]}]),
        chunk(content=[{"type": "text", "text": "is "}, {"type": "thinking", "thinking": []}]),
        chunk(content="so."),
    )
    assert segments == [Reasoning("Look. Yes. Go."), Text("It is so.")]


def test_characters_that_come_in_halves_are_joined() -> None:
    """Servers and proxies that count in UTF-16 cut there, in JSON of their own each time."""
    first, second = "\ud83d", "\ude00"
    segments = read_openai(
        chunk(reasoning=f"Hm {first}"),
        chunk(reasoning=second),
        chunk(content=f"a{first}"),
        chunk(content=f"{second}{first}"),
        chunk(content=second),
        chunk(tool_calls=[piece(0, "f", f'{{"x": "{first}')]),
        chunk(tool_calls=[piece(0, None, f'{second}"}}')]),
    )
    assert segments == [Reasoning("Hm 😀"), Text("a😀😀"), Call("f", '{"x": "😀"}')]
    lone = read_openai(chunk(content=f"b{second}"), chunk(content=f"c{first}"))
    assert lone == [Text("b\ufffdc\ufffd")]


def test_calls_that_all_have_index_0_are_told_apart_by_their_ids() -> None:
    """Ollama and Gemini count so."""
    segments = read_openai(
        chunk(tool_calls=[piece(0, "f", '{"x": 1}') | {"id": "a"}]),
        chunk(tool_calls=[piece(0, "g", "{") | {"id": "b"}]),
        chunk(tool_calls=[piece(0, None, "}")]),
    )
    assert segments == [Call("f", '{"x": 1}'), Call("g", "{}")]


def test_a_piece_without_a_name_is_of_the_call_before_whatever_its_id() -> None:
    """Older vLLM draws an id for each piece, and some servers tell it late."""
    for first, second in (("a", "b"), ("", "b"), ("a", "")):
        segments = read_openai(
            chunk(tool_calls=[piece(0, "f") | {"id": first}]),
            chunk(tool_calls=[piece(0, None, '{"x": ') | {"id": second}]),
            chunk(tool_calls=[piece(0, None, "1}") | {"id": second}]),
        )
        assert segments == [Call("f", '{"x": 1}')]


@pytest.mark.parametrize("second", ["f", "g"])
def test_calls_of_one_index_without_ids_are_told_apart_by_their_ends(second: str) -> None:
    whole = [piece(0, "f", '{"x": 1}'), piece(0, second, '{"x": 2}')]
    expected = [Call("f", '{"x": 1}'), Call(second, '{"x": 2}')]
    assert read_openai(*(chunk(tool_calls=[one]) for one in whole)) == expected
    assert read_openai(chunk(tool_calls=whole)) == expected


def test_arguments_may_come_as_an_object() -> None:
    pieces = [piece(0, "f") | {"function": {"name": "f", "arguments": {"x": "é"}}}, piece(1, "g")]
    assert read_openai(chunk(tool_calls=pieces)) == [Call("f", '{"x": "é"}'), Call("g", "{}")]


def test_calls_without_a_mark_are_told_apart_by_their_names() -> None:
    def unmarked(name: str | None, arguments: str) -> dict[str, Any]:
        return {"function": piece(0, name, arguments)["function"]}

    whole = [unmarked("f", "{}"), unmarked("g", '{"x": 1}'), unmarked("g", "{}")]
    assert read_openai(chunk(tool_calls=whole)) == [
        Call("f", "{}"),
        Call("g", '{"x": 1}'),
        Call("g", "{}"),
    ]
    cut = [unmarked("f", ""), unmarked(None, "{"), unmarked(None, "}"), unmarked("g", "{")]
    segments = read_openai(chunk(tool_calls=cut), chunk(tool_calls=[unmarked(None, "}")]))
    assert segments == [Call("f", "{}"), Call("g", "{}")]


@pytest.mark.parametrize("mark", [{}, {"id": "a"}])
def test_a_name_that_is_repeated_is_one(mark: dict[str, str]) -> None:
    pieces = [piece(0, "f", arguments) | mark for arguments in ("{", '"x": 1', "}")]
    assert read_openai(*(chunk(tool_calls=[one]) for one in pieces)) == [Call("f", '{"x": 1}')]


def test_a_malformed_call_is_text() -> None:
    for number in ("NaN", "1e999"):
        arguments = f'{{"a": {number}}}'
        assert read_openai(chunk(tool_calls=[piece(0, "f", arguments)])) == [
            Text(f"f({arguments})")
        ]
    assert read_openai(chunk(tool_calls=[piece(0, "add", '{"a": ')])) == [Text('add({"a": )')]
    assert read_openai(chunk(tool_calls=[piece(0, "add", "[1]")])) == [Text("add([1])")]


def test_anthropic_counts_thinks_and_calls() -> None:
    reader = AnthropicReader("x")
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}
    stream: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}},
        {"type": "content_block_start", "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "x"}},
        {"type": "content_block_stop"},
        {"type": "ping"},
        {"type": "content_block_start", "content_block": {"type": "text"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Wait."}},
        {"type": "content_block_stop"},
        {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "add"}},
        *(
            {
                "type": "content_block_delta",
                "delta": {"type": "input_json_delta", "partial_json": p},
            }
            for p in ('{"a"', ": 1}")
        ),
        {"type": "content_block_stop"},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 31},
        },
        {"type": "message_stop"},
    ]
    segments = [s for event in stream for s in reader.read("", json.dumps(event))]
    assert joined([*segments, *reader.finish()]) == [
        Reasoning("Hm."),
        Text("Wait."),
        Call("add", '{"a": 1}'),
    ]
    assert reader.reason == "stop"
    assert (reader.usage.prompt_tokens, reader.usage.cached_tokens) == (14, 7)
    assert reader.usage.completion_tokens == 31


@pytest.mark.parametrize(
    ("code", "body", "kind", "is_said"),
    [
        (500, {"error": {"message": "boom"}}, "down", "boom"),
        (502, "<html>", "down", "502"),
        (429, {"error": {"message": "slow down"}}, "busy", "slow down"),
        (401, {"error": {"message": "bad key sk-1234"}}, "refused", "key"),
        (404, {"error": "model 'x' not found"}, "refused", "not found"),
        (400, {"error": {"message": "no", "param": "top_k"}}, "refused", "no"),
    ],
)
def test_statuses_are_told_apart(code: int, body: Any, kind: str, is_said: str) -> None:
    problem = of_response("x.example", code, None, json.dumps(body).encode())
    assert problem.kind == kind
    assert is_said in problem.failed.message
    assert "sk-1234" not in problem.failed.message


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_may_say_by_a_date_when_it_is_back(code: int) -> None:
    def asked_for(date: str) -> tuple[str, float | None]:
        problem = of_response("x.example", code, date, b"")
        return problem.kind, problem.failed.retry_after_s

    kind, wait_s = asked_for(
        format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    )
    assert kind == "busy"
    assert wait_s == pytest.approx(90, abs=5)
    assert asked_for("Sun, 06 Nov 1994 08:49:37 GMT") == ("busy", 0.1)
    assert asked_for("Sun, 06 Nov 1994 08:49:37 -0000") == ("busy", 0.1)
    for nonsense in ("soon", "Sun, 06 Nov 2994 08:49:37 GMT", "-1", "nan"):
        assert asked_for(nonsense) == asked_for("")


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("error", '{"message": "no", "code": 400}'),
        ("error", '{"error": {"message": "no", "type": "BadRequestError"}}'),
        ("message", '{"object": "error", "message": "no", "type": "BadRequestError", "code": 400}'),
    ],
)
def test_an_error_in_a_stream_may_be_told_in_other_forms(event: str, data: str) -> None:
    """By the event's name, and, of older vLLM, bare."""
    with pytest.raises(Problem) as caught:
        OpenAIReader("x").read(event, data)
    assert caught.value.failed.code == "invalid_request"
    assert "no" in caught.value.failed.message
    with pytest.raises(Problem, match="broke off: out of order"):
        OpenAIReader("x").read("error", "out of order")


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"message": "bad temp", "code": 400}, "refused", "invalid_request"),
        ({"message": "bad temp", "code": "422"}, "refused", "invalid_request"),
        ({"message": "no", "code": 400, "param": "top_k"}, "refused", "invalid_parameter"),
        ({"message": "no", "type": "BadRequestError"}, "refused", "invalid_request"),
        (
            {"message": "no", "type": "invalid_request_error", "code": "unsupported_value"},
            *("refused", "invalid_request"),
        ),
        ({"message": "key sk-1", "type": "authentication_error"}, "refused", "upstream_error"),
        ({"message": "slow down", "code": 429}, "busy", "upstream_busy"),
        ({"message": "too many tokens a minute", "code": 429}, "busy", "upstream_busy"),
        ({"message": "full", "code": 503}, "busy", "upstream_busy"),
        ({"message": "full", "type": "overloaded_error"}, "busy", "upstream_busy"),
        (
            {"message": "full", "type": "requests", "code": "rate_limit_exceeded"},
            *("busy", "upstream_busy"),
        ),
        ({"message": "boom", "code": 500}, "down", "upstream_unavailable"),
        ({"message": "boom", "code": 1301}, "down", "upstream_unavailable"),
        ({"message": "boom", "type": "api_error"}, "down", "upstream_unavailable"),
        ("boom", "down", "upstream_unavailable"),
        ({"message": "prompt is too long: 9 > 8"}, "refused", "context_length_exceeded"),
        ({"message": "maximum context", "code": 500}, "refused", "context_length_exceeded"),
    ],
)
def test_errors_in_a_stream_are_told_apart(error: Any, kind: str, code: str) -> None:
    problem = of_event("x", error, "sk-1")
    assert (problem.kind, problem.failed.code) == (kind, code)
    assert "sk-1" not in problem.failed.message


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "too long"},
        {"message": "This model's maximum context length is 8192 tokens."},
        {"message": "prompt is too long: 9 tokens > 8 maximum"},
        {
            "message": "the request exceeds the available context size",
            "type": "exceed_context_size",
        },
    ],
)
def test_an_overflow_is_known_by_its_words(error: dict[str, str]) -> None:
    problem = of_response("x", 400, None, json.dumps({"error": error}).encode())
    assert problem.failed.code == "context_length_exceeded"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_any_error_body_becomes_a_sentence(body: Any) -> None:
    for problem in (of_response("x", 400, "soon", json.dumps(body).encode()), of_event("x", body)):
        assert isinstance(problem, Problem)
        assert problem.failed.message
