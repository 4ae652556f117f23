"""Events survive the log, readers never see token ids, and parts fold up the same in any batches."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from chat.events import (
    Delta,
    Failed,
    Finished,
    LogEvent,
    Refused,
    Resumed,
    RunTimings,
    RunUsage,
    Started,
    Stopped,
    ToolCall,
    ToolResult,
    for_reader,
    from_payload,
    to_payload,
)
from chat.parts import apply, fold, text_of

_deltas = st.builds(
    Delta,
    text=st.text(max_size=8),
    offset=st.just(0),
    part=st.sampled_from(["text", "reasoning"]),
    ids=st.tuples(st.integers(0, 99)),
)
_events: st.SearchStrategy[LogEvent] = st.one_of(
    _deltas,
    st.builds(Started, model=st.just("m"), revision=st.just("r"), seed=st.integers(0, 2**63 - 1)),
    st.builds(ToolCall, id=st.just("c"), name=st.text(max_size=5), arguments=st.just("{}")),
    st.builds(ToolResult, id=st.just("c"), content=st.text(max_size=9)),
    st.just(Resumed()),
    st.just(Finished("stop", RunUsage(3, 2, 1), RunTimings(1.0, 2.0))),
    st.builds(Stopped, chars=st.integers(0, 20)),
    st.just(Refused("policy", "no")),
    st.just(Failed("overloaded", "full", 5.0)),
)


@given(_events)
def test_an_event_survives_the_log(event: LogEvent) -> None:
    assert from_payload(to_payload(event)) == event


@given(_events)
def test_readers_get_no_token_ids(event: LogEvent) -> None:
    shown = for_reader(event)
    assert shown["kind"] == event.kind
    assert not {"ids", "prompt_ids"} & shown.keys()


def test_the_prompt_is_not_in_the_event_log() -> None:
    assert "prompt_ids" not in to_payload(Started("m", "r", 1, 0, (1, 2, 3)))


@given(st.lists(_deltas, max_size=10), st.integers(0, 40))
def test_stop_cuts_the_text_where_it_was_seen(deltas: list[Delta], chars: int) -> None:
    whole = text_of(fold(deltas))
    stopped = fold([*deltas, Stopped(chars=chars)])
    assert text_of(stopped) == whole[:chars]
    assert [p for p in stopped if p["type"] == "reasoning"] == [
        p for p in fold(deltas) if p["type"] == "reasoning"
    ] or len(whole) > chars


@given(st.lists(_events, max_size=12))
def test_folding_is_applying_one_by_one(events: list[LogEvent]) -> None:
    parts: list[dict[str, object]] = []
    for event in events:
        apply(parts, event)
    assert parts == fold(events)
    assert not any(p["type"] == q["type"] == "text" for p, q in itertools.pairwise(parts))
