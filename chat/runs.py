"""Running answers. A run belongs to the server: it outlives sockets, tabs and, through its log,
this process. It numbers the events of answer(), logs them, and only then shows them to followers, so
that nothing that was seen can be lost.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import asdict, replace
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError, IntegrityError
from django.utils.translation import gettext

from chat import holds, revoked, run_log, run_log_reading
from chat.active import num_active
from chat.asking import AnswerRequest, Control
from chat.db import in_db
from chat.events import (
    TERMINAL,
    Delta,
    Event,
    Failed,
    Finished,
    Found,
    LogEvent,
    Phase,
    Refused,
    Searched,
    Stopped,
    ToolCall,
    ToolResult,
)
from chat.log_writer import LogWriter
from chat.orchestrator import answer
from chat.persisting import AWAY
from chat.run_log import LeaseLost
from chat.spans import Span, Trace

logger = logging.getLogger(__name__)

PROCESS_ID = f"{socket.gethostname()[:32]}:{os.getpid()}:{secrets.token_hex(4)}"
RENEW_S = 2.0  # a third of the lease
REVOKED_S = 0.5  # between two looks whether what the model has read may still be read
FLUSH_S = 0.08  # a dozen flushes a second read as fluent text
FLUSH_S_PER_ANSWER = 0.002  # a hundred of them: five a second
GATHERED = 0.6  # of a beat behind the last flush: no more than jitter is missing
PHASE_S = 0.25  # between two numbers of the same phase
STORAGE_PATIENCE_S = 30.0
REMEMBER_S = 60.0  # how long an ended run can be followed from memory

T = TypeVar("T")
_log = LogWriter(PROCESS_ID)
_runs: dict[UUID, "Run"] = {}


class Run:
    """One answer being written. `events[i]` has the seq i + 1 and is in the log."""

    def __init__(
        self, run_id: UUID, *, conversation_id: UUID, message_id: UUID, user_id: Any, trace: Trace
    ) -> None:
        self.id = run_id
        self.conversation_id = conversation_id
        self.message_id = message_id
        self.user_id = user_id
        self.trace = trace
        self.events: list[LogEvent] = []
        self.phase: Phase | None = None
        self.control = Control()
        self.num_followers = 0
        self.is_seen = False  # whether anybody followed it when it ended
        self.task: asyncio.Task[None] | None = None
        self._pending: list[LogEvent] = []
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._news = asyncio.Event()
        self._stop_chars: int | None = None
        self._renewed_s = self._held_s = monotonic()
        self._told_phase_s = self._flushed_s = 0.0
        self._reads: frozenset[str] = frozenset()  # versions of documents that are in the prompt
        self._looked_s = monotonic()

    # --- for followers --------------------------------------------------------------------------

    is_kept = True
    """Whether its events are in the log; those of temporary chats are not."""

    @property
    def has_ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], TERMINAL)

    @property
    def is_running(self) -> bool:
        """Whether it is on its way in this process, whatever its lease says."""
        return self.task is not None and not self.task.done()

    def subscribe(self) -> asyncio.Event:
        """An asyncio event that the next news will set. Take it before you look."""
        return self._news

    def stop(self, chars: int | None) -> None:
        """End the answer; its text ends after `chars` characters, where the reader saw it end."""
        if chars is not None:
            self._stop_chars = max(0, chars)
        self.control.stop()

    # --- writing --------------------------------------------------------------------------------

    async def write(self, request: AnswerRequest) -> None:
        """Run answer() to its end. Leaves the log in order whatever happens."""
        producer = asyncio.create_task(self._produce(request))
        try:
            await self._note_reads(request)
            while not self.has_ended:
                await self._wait_for_events()
                await self._gather()
                await self._flush()
        except LeaseLost:
            logger.warning("run %s is written by another process now", self.id)
        except asyncio.CancelledError:
            await self._release()
            raise
        except DatabaseError:
            # Not for want of a connection: the same events would be refused again and again.
            logger.exception("run %s cannot be stored", self.id)
            await self._fail()
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)
            self._announce()

    async def _fail(self) -> None:
        """End with what was shown by now."""
        self._pending = [failed()]
        await self._flush()

    async def _note_reads(self, request: AnswerRequest) -> None:
        """Of what was found before, what may be read now: of the rest the prompt tells nothing."""
        self._reads |= request.reads
        found = [event for event in request.events if isinstance(event, Found)]
        versions = frozenset[str]().union(*(event.versions for event in found))
        if versions:
            readable = await self._patiently(in_db(revoked.readable), versions)
            self._reads |= readable

    async def _produce(self, request: AnswerRequest) -> None:
        try:
            async with aclosing(answer(request, self.control)) as events:
                async for event in events:
                    self._hear(event)
        except AWAY:
            logger.exception("run %s could not ask the database", self.id)
            if self.is_kept:
                self._leave()
            else:
                self._hear(failed())
        except Exception:
            logger.exception("run %s failed", self.id)
            self._hear(failed())

    def _leave(self) -> None:
        """Let go of the answer, for the next process to take up what is in the log."""
        assert self.task is not None
        self.task.cancel()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Phase):
            self._hear_phase(event)
            return
        if isinstance(event, Span):
            self.trace.add(event)
            return
        assert not isinstance(event, Searched)  # which programs alone ask for
        if isinstance(event, Failed) and event.code == "engine_closed":
            self._leave()  # this process ends, not the answer
            return
        if isinstance(event, Found):
            self._reads |= event.versions
        if isinstance(event, Stopped) and self._stop_chars is not None:
            event = replace(event, chars=min(event.chars, self._stop_chars))
        last = self._pending[-1] if self._pending else None
        if isinstance(event, Delta) and isinstance(last, Delta) and event.part == last.part:
            self._pending[-1] = replace(last, text=last.text + event.text, ids=last.ids + event.ids)
        else:
            self._pending.append(event)
        self._wake.set()
        if not isinstance(event, Delta):
            self._urgent.set()

    def _hear_phase(self, phase: Phase) -> None:
        """Another phase is news at once; the same one with other numbers a few times a second.

        Where something is about to be flushed, it is told with that.
        """
        is_other = self.phase is None or self.phase.phase != phase.phase
        now_s = monotonic()
        if is_other or now_s - self._told_phase_s > PHASE_S:
            self.phase, self._told_phase_s = phase, now_s
            if not self._pending:
                self._announce()

    async def _wait_for_events(self) -> None:
        while not self._pending:
            self._wake.clear()
            try:
                async with asyncio.timeout(RENEW_S):
                    await self._wake.wait()
            except TimeoutError:
                await self._stop_if_revoked()
                await self._renew()

    async def _renew(self) -> None:
        """Keep the lease and the hold of the budget, and hear of a stop that another process was asked
        for."""
        self._renewed_s = monotonic()
        if self._renewed_s - self._held_s > holds.HOLD_S / 3:
            self._held_s = self._renewed_s
            await self._patiently(in_db(holds.hold_on), self.id)
        asked = await self._patiently(in_db(run_log.renew), self.id, PROCESS_ID)
        if asked is not None:
            self.stop(asked.chars)
        if self.control.is_asking:
            for call_id, allowed in (
                await self._patiently(in_db(run_log.decided), self.id)
            ).items():
                self.control.decide(call_id, allowed)

    async def _stop_if_revoked(self) -> None:
        """The model has read what its reader may not read any more, and would go on to tell of it."""
        reads = self._reads
        if not reads or monotonic() - self._looked_s < REVOKED_S:
            return
        self._looked_s = monotonic()
        if await self._patiently(in_db(revoked.readable), reads) < reads:
            self.control.stop()

    async def _gather(self) -> None:
        """Let text wait until the next beat, which all runs share, so that it is logged together.

        What an engine has gathered comes at its own pace, and waits no second time. Anything but text
        is worth a flush of its own at once.
        """
        if not self.events or not isinstance(self.events[-1], Delta):
            return
        self._urgent.clear()
        if any(not isinstance(event, Delta) for event in self._pending):
            return
        beat_s = max(FLUSH_S, FLUSH_S_PER_ANSWER * num_active())
        now_s = monotonic()
        if now_s - self._flushed_s > GATHERED * beat_s:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(beat_s - now_s % beat_s):
                await self._urgent.wait()

    async def _flush(self) -> None:
        """Log what is pending, then show it."""
        self._flushed_s = monotonic()
        events, self._pending = self._pending, []
        if isinstance(events[-1], Failed):
            events[-1] = replace(events[-1], trace_id=self.trace.id)
        await self._keep(events)
        self.events += events
        if isinstance(events[-1], Refused) and events[-1].removes:
            self.events = list(map(_taken_back, self.events))
        self.is_seen = self.has_ended and self.num_followers > 0
        self._announce()
        if not self.has_ended:
            await self._stop_if_revoked()
        if not self.has_ended and monotonic() - self._renewed_s > RENEW_S:
            await self._renew()

    async def _keep(self, events: list[LogEvent]) -> None:
        """Write events to the log, with the last ones the message."""
        first_seq = len(self.events) + 1
        if isinstance(events[-1], TERMINAL):
            everything = self.events + events
            finish = in_db(run_log.finish)
            last_seq = len(everything)
            await self._store(
                last_seq, finish, self.id, PROCESS_ID, first_seq, events, everything, self.trace
            )
            logger.info("run ended", extra=self._facts(events[-1]))
        else:
            await self._append(first_seq, events)

    async def _release(self) -> None:
        await in_db(run_log.release)(self.id, PROCESS_ID)

    async def _append(self, first_seq: int, events: list[LogEvent]) -> None:
        news = None if self.trace.is_saved else self.trace
        last_seq = first_seq + len(events) - 1
        await self._store(last_seq, _log.append, self.id, first_seq, events, news)

    def _facts(self, end: LogEvent) -> dict[str, Any]:
        """Of the run, for its line in the log: ids and counts, no text."""
        facts: dict[str, Any] = {"run": str(self.id), "end": end.kind}
        if isinstance(end, Finished | Stopped):
            facts |= asdict(end.usage)
            facts |= {name: round(ms, 1) for name, ms in asdict(end.timings).items()}
        elif isinstance(end, Failed | Refused):
            facts["code"] = end.code
        return facts

    async def _store(
        self, last_seq: int, write: Callable[..., Awaitable[None]], *arguments: Any
    ) -> None:
        """Write events up to `last_seq`, patiently. Where the connection broke at the COMMIT nobody has
        heard whether it came through: then the next try finds it done."""
        is_again = False

        async def once() -> None:
            nonlocal is_again
            try:
                await write(*arguments)
            except AWAY:
                is_again = True
                raise
            except (IntegrityError, LeaseLost):
                has_logged = in_db(run_log_reading.has_logged)
                if not is_again or not await has_logged(self.id, PROCESS_ID, last_seq):
                    raise

        await self._patiently(once)

    async def _patiently(self, write: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Write to the log; when Postgres is away, wait for it while the answer goes on."""
        delay_s = 0.1
        async with asyncio.timeout(STORAGE_PATIENCE_S):
            while True:
                try:
                    return await write(*arguments)
                except AWAY:
                    logger.warning("run %s cannot be logged, trying again", self.id)
                    await asyncio.sleep(delay_s)
                    delay_s = min(2.0, delay_s * 2)

    def _announce(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _taken_back(event: LogEvent) -> LogEvent:
    """What a policy has taken back is told to no later follower either."""
    match event:
        case Delta():
            return replace(event, text="", offset=0, logprobs=())
        case ToolCall() | ToolResult():
            return Delta("", 0)
    return event


def failed() -> Failed:
    """The end of an answer for a reason that tells its reader nothing."""
    return Failed("internal_error", gettext("Something went wrong while writing this answer."))


# --- the runs of this process -------------------------------------------------------------------


def get(run_id: UUID) -> Run | None:
    return _runs.get(run_id)


def known() -> list[Run]:
    """Runs of this process, and those that have ended a moment ago."""
    return list(_runs.values())


def active() -> list[Run]:
    """Runs of this process that have not ended."""
    return [run for run in _runs.values() if run.is_running]


def start(run: Run, request: AnswerRequest, after: Callable[[Run], Any]) -> None:
    """Begin to write an answer. `after` is awaited once it has ended, for titles and notices."""
    _runs[run.id] = run
    run.task = asyncio.create_task(_write_and_forget(run, request, after), name=f"run {run.id}")


async def _write_and_forget(run: Run, request: AnswerRequest, after: Callable[[Run], Any]) -> None:
    try:
        await run.write(request)
        if run.has_ended:
            await after(run)
    except Exception:
        logger.exception("run %s ended badly", run.id)
    finally:
        if run.has_ended:
            asyncio.get_running_loop().call_later(REMEMBER_S, _runs.pop, run.id, None)
        else:
            _runs.pop(run.id, None)


async def release() -> None:
    """Leave what still runs to the next process."""
    tasks = [run.task for run in active() if run.task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def follow(run: Run, after: int) -> AsyncGenerator[tuple[int, LogEvent] | Phase, None]:
    """Events behind `after` with their seq, and phases as they change; ends with the run."""
    run.num_followers += 1
    try:
        async with aclosing(_news(run, after)) as news:
            async for piece in news:
                yield piece
    finally:
        run.num_followers -= 1


async def _news(run: Run, after: int) -> AsyncGenerator[tuple[int, LogEvent] | Phase, None]:
    seq = after
    shown_phase: Phase | None = None
    while True:
        news = run.subscribe()
        while seq < len(run.events):
            seq += 1
            yield seq, run.events[seq - 1]
        if run.has_ended or (run.task is not None and run.task.done()):
            return
        if run.phase is not None and run.phase is not shown_phase:
            shown_phase = run.phase
            yield shown_phase
        await news.wait()
