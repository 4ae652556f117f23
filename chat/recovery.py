"""Answers whose process died: found by their expired lease, claimed, and written to their end."""

import logging
import re
from dataclasses import replace
from uuid import UUID

from django.db import connection
from django.utils import timezone

from chat import access, answers, history, notices, revoked, run_log, run_log_reading, runs
from chat.asking import TurnSoFar
from chat.blackening import BLACK
from chat.db import in_db
from chat.events import Failed, Found, LogEvent, Resumed, Started, Stopped
from chat.models import Generation
from chat.parts import fold, text_of
from chat.spans import Clock, Span, Trace

logger = logging.getLogger(__name__)
_TAKEN_OUT = re.compile(rf"{re.escape(BLACK)}█*\]\s*$")
"""Where a key of many lines may go on, of which nobody knows any more how it began: the log has the sign
in its place."""
LOST = """
SELECT run.id, conversation.owner_id FROM chat_generation AS run
JOIN chat_conversation AS conversation ON conversation.id = run.conversation_id
WHERE run.status IN ('queued', 'prefill', 'decode') AND run.lease_until < %s
"""
MAX_ATTEMPTS = 4  # an answer that took three processes down is not tried again


def find_lost() -> list[tuple[UUID, int]]:
    """(run id, owner id) of active runs that nobody holds. Needs the system scope."""
    with connection.cursor() as cursor:
        cursor.execute(LOST, [timezone.now()])
        return [(run_id, owner_id) for run_id, owner_id in cursor.fetchall()]


async def resume(run_id: UUID) -> bool:
    """Claim a lost run and go on with it. Needs the owner's scope. False: somebody else has it.

    That may be this very process, when it was too busy to renew its lease in time. It does so when
    it writes next, and a claim of its own would pass for that: the answer would have two writers.
    """
    run = runs.get(run_id)
    if run is not None and run.is_running:
        return False
    claimed = await in_db(_claim)(run_id)
    if claimed is None:
        return False
    generation, logged, trace = claimed
    events = logged.events
    is_revoked = not generation.stop_requested and await in_db(_is_revoked)(generation, events)
    end = _end_without_engine(generation, logged, is_revoked)
    next_seq = generation.seq + 1
    if isinstance(end, Failed):
        end = replace(end, trace_id=trace.id)
    last: list[LogEvent] = [end or Resumed()]
    if end is None:
        await in_db(run_log.append)(run_id, runs.PROCESS_ID, next_seq, last)
        turn = None
        if logged.prompt_ids:
            turn = TurnSoFar(logged.prompt_ids, logged.output_ids, logged.images)
        usage = logged.taken.by_ended
        await answers.take_up(generation, events + last, turn, trace, usage)
        logger.info("run %s goes on after %d events", run_id, len(events))
    else:
        await in_db(run_log.finish)(run_id, runs.PROCESS_ID, next_seq, last, events + last, trace)
        await notices.conversation_changed(
            generation.conversation.owner_id, generation.conversation_id
        )
    return True


def _claim(run_id: UUID) -> tuple[Generation, run_log_reading.Logged, Trace] | None:
    rows = Generation.objects.filter(pk=run_id).select_related("conversation", "message")
    with access.seeing_deleted():  # an answer ends, whatever became of its chat
        generation = rows.first()
        if generation is None or not run_log.claim(generation, runs.PROCESS_ID):
            return None
        generation.attempts += 1
        generation.stop_requested |= generation.conversation.deleted_at is not None
    with access.seeing_deleted():  # of its own: what cannot be read was tried all the same
        is_last = generation.attempts > MAX_ATTEMPTS
        logged = run_log_reading.load(generation, only_readable=is_last)
    return generation, logged, _trace_so_far(generation, logged)


def _trace_so_far(generation: Generation, logged: run_log_reading.Logged) -> Trace:
    """The trace with what the other process was at when it died, and the time without any."""
    trace = Trace.from_json(generation.trace, Clock(generation.created_at))
    alive = run_log.last_written_at(generation) - generation.created_at
    died_ms = max(trace.end_ms, alive.total_seconds() * 1e3)
    if logged.output_ids:
        turn = max((e.turn for e in logged.events if isinstance(e, Started)), default=0)
        facts = {"turn": turn, "tokens": len(logged.output_ids)}
        trace.add(Span("decode", trace.end_ms, died_ms, facts))
    trace.add(Span("interrupted", died_ms, max(died_ms, trace.clock.now_ms())))
    return trace


def _is_revoked(generation: Generation, events: list[LogEvent]) -> bool:
    """Whether its prompt, which it would go on behind, holds what its reader may not read any more."""
    path = history.branch_to(generation.conversation, generation.message.parent_id)
    found = [event for event in events if isinstance(event, Found)]
    versions = revoked.versions_in(path).union(*(event.versions for event in found))
    return bool(versions - revoked.readable(versions))


def _end_without_engine(
    generation: Generation, logged: run_log_reading.Logged, is_revoked: bool
) -> LogEvent | None:
    """How a run ends that must not go on; None when it may."""
    parts = fold(logged.events)
    if generation.stop_requested or is_revoked:
        chars = len(text_of(parts))
        shown = min(chars, generation.params.get("stop_chars", chars))
        return Stopped(shown, logged.taken.by_all)
    if generation.attempts > MAX_ATTEMPTS:
        message = "The server went down several times while it wrote this answer."
        return Failed("interrupted", message)
    if parts and _TAKEN_OUT.search(parts[-1].get("text", "")):
        message = "The server went down while something was taken out of this answer."
        return Failed("interrupted", message)
    return None
