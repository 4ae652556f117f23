"""An answer's events behind its screens: nothing is seen before the question is judged, and no sentence
before it is, where a policy may stop it.

The question is judged while documents are looked up and the engine reads the prompt; what comes
meanwhile waits. Where policies only take notes, answers stream as ever, and are judged when whole.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from chat.document_prompt import without_text
from chat.events import (
    TERMINAL,
    Delta,
    Event,
    Failed,
    LogEvent,
    PartKind,
    Phase,
    Refused,
    Stopped,
    ToolCall,
)
from chat.holding_back import HoldBack, Piece, context_of, placed
from chat.json_texts import texts_in
from chat.off_loop import off_loop_if_long
from chat.outcomes import Outcome, facts_of
from chat.prompt_plan import PromptPlan
from chat.screen import Screen, must_wait, texts_in_exchange
from chat.spans import Clock, Span
from moderation.policies import Stage, rank

_SEEN_WHILE_WAITING = ("searching", "loading", "queued", "asking")
_background: set[asyncio.Task[object]] = set()  # the loop itself holds tasks weakly


async def screened(
    screen: Screen,
    texts: Sequence[str],
    begin: Callable[[], AsyncGenerator[Event, None]],
    clock: Clock,
    *,
    is_elsewhere: bool = False,
) -> AsyncGenerator[Event, None]:
    """The events that `begin` starts, as far as policies let them through; `texts` were asked.

    With `is_elsewhere` the model is another server's, which is told nothing that may yet be blocked.
    """
    if (failed := await must_wait(screen)) is not None:
        yield failed
        return
    if is_elsewhere and screen.may_stop("input"):
        refused, span = await _judge_input(screen, texts, clock)
        yield span
        if refused is not None:
            yield refused
            return
        events = begin()
    elif screen.decides("input"):
        events = _behind_gate(screen, texts, begin(), clock)
    else:
        if screen.judges("input"):
            _soon(_note(screen, "input", texts))
        events = begin()
    if screen.may_stop("output"):
        events = _held_back(screen, events, clock)
    elif screen.judges("output"):
        events = _noted(screen, events)
    async with aclosing(events):
        async for event in events:
            yield event


# --- the question ---------------------------------------------------------------------------------


async def _behind_gate(
    screen: Screen,
    texts: Sequence[str],
    events: AsyncGenerator[Event, None],
    clock: Clock,
) -> AsyncGenerator[Event, None]:
    verdict = asyncio.create_task(_judge_input(screen, texts, clock))
    ahead: deque[Event] = deque()
    changed = asyncio.Event()
    running = asyncio.create_task(_run_ahead(events, ahead, changed))
    for task in (verdict, running):
        task.add_done_callback(lambda _: changed.set())
    held: list[Event] = []
    async with aclosing(events):
        try:
            while not (verdict.done() or running.done()):
                await changed.wait()
                changed.clear()
                while ahead:
                    event = ahead.popleft()
                    if isinstance(event, Phase) and event.phase in _SEEN_WHILE_WAITING:
                        yield event
                    else:
                        held.append(event)
            if running.done():
                running.result()
            refused, span = await verdict
            yield span
            if refused is not None:
                yield refused
                return
            for event in held:
                yield event
            while ahead or not running.done():
                while ahead:
                    yield ahead.popleft()
                if not running.done():
                    changed.clear()
                    await changed.wait()
            running.result()
        finally:
            await _cancelled(verdict, running)
        async for event in events:
            yield event


async def _run_ahead(
    events: AsyncGenerator[Event, None], ahead: deque[Event], changed: asyncio.Event
) -> None:
    """In one task, up to something that only the reader's eye is missing: there is no need to go on
    before the verdict."""
    async for event in events:
        ahead.append(event)
        changed.set()
        if isinstance(event, (Delta, ToolCall, *TERMINAL)):
            return


async def _cancelled(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _judge_input(
    screen: Screen, texts: Sequence[str], clock: Clock
) -> tuple[Refused | None, Span]:
    start_ms = clock.now_ms()
    outcome = await screen.judge("input", texts)
    refused = await screen.decide("input", outcome)
    return refused, _span("input", start_ms, clock, outcome)


def _span(stage: str, start_ms: float, clock: Clock, outcome: Outcome) -> Span:
    return Span("moderation", start_ms, clock.now_ms(), {"stage": stage, **facts_of(outcome)})


# --- the answer -----------------------------------------------------------------------------------


async def _held_back(
    screen: Screen, events: AsyncGenerator[Event, None], clock: Clock
) -> AsyncGenerator[Event, None]:
    """A phase follows what one update of the engine has said. That is shown as a whole or not at all:
    its first delta has the ids of all, behind which others go on, or branch from one of them."""
    hold, found = HoldBack(_ends_of(screen.request.events)), _Found(clock)
    num_shown: dict[PartKind, int] = {}
    ready: list[Event] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Phase | Span):
                if not hold.cuts_update:
                    for one in ready:
                        yield one
                    ready = []
                yield event
                continue
            refused = await _judge_output(screen, hold, event, num_shown, ready, found)
            if refused is not None or isinstance(event, TERMINAL):
                for span in found.spans():
                    yield span
            if refused is None and isinstance(event, Delta | ToolCall):
                continue
            if isinstance(event, Stopped | Failed) and hold.cuts_update:
                _take_back(ready, num_shown)
            if refused is not None:
                ready = list(map(_without_ids, ready))
            for one in ready:
                yield one
            ready = []
            if refused is not None:
                yield refused
                return
            if isinstance(event, Stopped):
                event = replace(event, chars=min(event.chars, num_shown.get("text", event.chars)))
            yield event


class _Found:
    """What was found in the sentences of an answer, as one span: the worst of it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ms: float | None = None
        self._worst = Outcome()
        self._has_failed = False
        self._took_ms = 0.0

    def told(self, outcome: Outcome) -> Outcome:
        if self._start_ms is None:
            self._start_ms = self._clock.now_ms() - outcome.took_ms
        if rank(outcome.verdict.action) > rank(self._worst.verdict.action):
            self._worst = outcome
        self._has_failed |= bool(outcome.failed)
        self._took_ms += outcome.took_ms
        return outcome

    def spans(self) -> list[Span]:
        """None where nothing was judged."""
        if self._start_ms is None:
            return []
        span = _span("output", self._start_ms, self._clock, self._worst)
        span.facts["has_failed"] = self._has_failed
        span.facts["took_ms"] = round(self._took_ms, 2)
        return [span]


def _take_back(ready: list[Event], num_shown: dict[PartKind, int]) -> None:
    """What nobody has seen yet is not shown any more."""
    for one in ready:
        if isinstance(one, Delta):
            num_shown[one.part] -= len(one.text)
    ready.clear()


def _without_ids(event: Event) -> Event:
    """Ids and likelihoods come with an update's beginning, and tell of what was stopped in its end."""
    return replace(event, ids=(), logprobs=()) if isinstance(event, Delta) else event


async def _judge_output(
    screen: Screen,
    hold: HoldBack,
    event: Event,
    num_shown: dict[PartKind, int],
    ready: list[Event],
    found: "_Found",
) -> Refused | None:
    """Add to `ready` what is whole with this event, and fit to be shown."""
    if isinstance(event, Delta):
        num_shown.setdefault(event.part, event.offset)
        pieces = hold.hear(event)
    elif isinstance(event, Stopped | Failed):
        pieces = []  # nobody has seen it, and nobody will
    else:
        pieces = hold.rest()
    for piece in pieces:
        outcome = found.told(await screen.judge("output", [piece.context + piece.text]))
        if (refused := await _stopped_by(screen, outcome)) is not None:
            return refused
        part = piece.deltas[0].part
        if (start := screen.open_from("output", piece.context + piece.text)) is not None:
            hold.goes_on_from(part, (piece.context + piece.text)[start:])
        for delta in placed(_redacted(screen, piece), num_shown.setdefault(part, 0)):
            num_shown[part] += len(delta.text)
            ready.append(delta)
    if isinstance(event, ToolCall):
        outcome = await screen.judge("output", [_said_in(event)])
        # A call is run as it is, or not at all.
        outcome = found.told(outcome.without_redacting())
        if (refused := await _stopped_by(screen, outcome)) is not None:
            return refused
        ready.append(event)
    return None


def _ends_of(events: Sequence[LogEvent]) -> dict[PartKind, str]:
    ends: dict[PartKind, str] = {}
    for event in events:
        if isinstance(event, Delta):
            ends[event.part] = context_of(ends.get(event.part, "") + event.text)
    return ends


def _said_in(call: ToolCall) -> str:
    """The name and all strings of its arguments, as a tool would read them."""
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        values = call.arguments
    return "\n".join([call.name, call.arguments, *texts_in(values)])


async def _stopped_by(screen: Screen, outcome: Outcome, stage: Stage = "output") -> Refused | None:
    """Sentences that are let through without a reason leave no row each."""
    if outcome.verdict.action == "allow" and not outcome.failed and not screen.chosen.trials:
        return None
    return await screen.decide(stage, outcome)


def _redacted(screen: Screen, piece: Piece) -> Piece:
    """What a match has of the context was shown before its end was there; the rest of it goes."""
    if not screen.redacts("output"):
        return piece
    redacted = screen.redacted("output", piece.context + piece.text, len(piece.context))
    return piece if redacted == piece.text else piece.saying(redacted)


async def _noted(
    screen: Screen, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[Event, None]:
    """Also where its reader leaves early, or the process ends: what was shown was shown."""
    said = [_ends_of(screen.request.events).get("text", "")]
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Delta):
                    said.append(event.text)
                elif isinstance(event, ToolCall):
                    said.append(f"\n{_said_in(event)}\n")
                yield event
    finally:
        if any(said[1:]):
            _soon(_note(screen, "output", ["".join(said)]))


async def _note(screen: Screen, stage: Stage, texts: Sequence[str]) -> None:
    await screen.decide(stage, await screen.judge(stage, texts))


def _soon(work: object) -> None:
    task: asyncio.Task[object] = asyncio.create_task(work)  # type: ignore[arg-type]
    _background.add(task)
    task.add_done_callback(_background.discard)


async def noted() -> None:
    """Wait for the answers that are still being judged: before the process ends, and in tests."""
    while _background:
        await asyncio.gather(*_background, return_exceptions=True)


# --- what comes from elsewhere --------------------------------------------------------------------


async def fit_to_read(
    screen: Screen,
    stage: Literal["documents", "tools"],
    text: str,
    *,
    is_told_again: bool = False,
) -> str | None:
    """A document's or tool's text as the model may read it; None: not at all. What `is_told_again` and
    let through leaves no row each time."""
    if not screen.decides(stage):
        if screen.judges(stage):
            _soon(_note(screen, stage, [text]))
        return text
    outcome = await screen.judge(stage, [text])
    decide = _stopped_by(screen, outcome, stage) if is_told_again else screen.decide(stage, outcome)
    if await decide is not None:
        return None
    num_chars = len(text) if screen.redacts(stage) else 0
    return await off_loop_if_long(num_chars, screen.redacted, stage, text)


async def with_fit_documents(screen: Screen, plan: PromptPlan) -> PromptPlan:
    """The plan with passages as the model may read them. Those of earlier questions were found when
    another policy was in force, or for another model; only what is kept back now leaves a row."""
    if not screen.decides("documents"):
        return plan
    rows = list(dict.fromkeys(row for one in plan.exchanges for row in one.passages))
    judged = await asyncio.gather(*(_passage(screen, row) for row in rows))
    return plan.with_passages(dict(zip(rows, judged, strict=True)))


async def without_stopped(screen: Screen, plan: PromptPlan) -> PromptPlan:
    """The plan without earlier exchanges that the policy blocks by now, or blocks for this model: they
    were answered before, and all that follows them would be blocked with them. Nor with summaries that
    tell too much of them. What is asked stays."""
    if not screen.may_stop("input"):
        return plan
    earlier = {one.id: texts_in_exchange(one) for one in plan.earlier}
    stopped = await screen.blocked("input", earlier)
    if not stopped:
        return plan
    await screen.note_earlier(stopped)
    summaries = [*plan.summaries, *([plan.summary] if plan.summary else [])]
    told = await screen.blocked("input", {one.id: [one.text] for one in summaries})
    return plan.without({*stopped, *told})


async def _passage(screen: Screen, row: str) -> str:
    outcome = await screen.judge("documents", [row])
    if outcome.stop:
        await screen.decide("documents", outcome)
        return without_text(row)
    return screen.redacted("documents", row)


__all__ = [
    "LogEvent",
    "fit_to_read",
    "noted",
    "screened",
    "with_fit_documents",
    "without_stopped",
]
