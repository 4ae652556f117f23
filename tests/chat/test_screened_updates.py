"""What the engine says at once is shown at once, or not at all."""

import asyncio
from collections.abc import AsyncGenerator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat import (
    screening,
)
from chat.events import (
    TERMINAL,
    Delta,
    Event,
    Failed,
    Finished,
    Phase,
    Stopped,
    TerminalEvent,
    ToolCall,
)
from chat.spans import Clock
from tests.chat.screens import Kept, said_in, screen

SENTENCES = st.text(alphabet="ab .!", max_size=30).filter(bool)


PIECES = st.tuples(st.sampled_from(["text", "reasoning", "call"]), SENTENCES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    updates=st.lists(st.lists(PIECES, max_size=4), min_size=1, max_size=8),
    end=st.sampled_from([Finished("stop"), Stopped(0), Failed("engine_died", "It has died.")]),
)
async def test_an_update_of_the_engine_is_shown_as_a_whole(
    judging: asyncio.Event, kept: Kept, updates: list[list[tuple[str, str]]], end: TerminalEvent
) -> None:
    """An answer that is cut anywhere goes on behind the ids that were shown: all that they stand for
    has to be there. So has it where somebody branches from one of them."""
    judging.set()
    given = [told(number, said) for number, said in enumerate(updates)]

    async def answer() -> AsyncGenerator[Event, None]:
        for events in given:
            for event in events:
                yield event
            yield Phase("decode")
        is_stop = isinstance(end, Stopped)
        yield Stopped(sum(len(said_in(events, "text")) for events in given)) if is_stop else end

    shown: list[Event] = []
    policy = {"output": {"illicit": {"block": 0.5}}}
    async for event in screening.screened(screen(policy), [], answer, Clock()):
        shown.append(event)
        if not isinstance(event, (Phase, *TERMINAL)):
            continue
        ids = {id_ for one in shown if isinstance(one, Delta) for id_ in one.ids}
        whole = [events for number, events in enumerate(given) if number in ids]
        for part in ("text", "reasoning"):
            assert said_in(shown, part) == "".join(said_in(events, part) for events in whole)
        calls = [one for one in shown if isinstance(one, ToolCall)]
        assert calls == [one for events in whole for one in events if isinstance(one, ToolCall)]
    if isinstance(end, Finished):
        assert ids == set(range(len(updates)))
    if isinstance(event, Stopped):
        assert event.chars == len(said_in(shown, "text"))


def told(number: int, said: list[tuple[str, str]]) -> list[Event]:
    """As a turn tells an update with one id: it is the first delta's."""
    ids: tuple[int, ...] = (number,)
    events: list[Event] = []
    if not said or said[0][0] == "call":
        events, ids = [Delta("", 0, ids=ids)], ()
    for kind, text in said:
        if kind == "call":
            events.append(ToolCall(f"{number}", "look", text))
        else:
            events.append(Delta(text, 0, kind, ids))  # type: ignore[arg-type]
            ids = ()
    return events
