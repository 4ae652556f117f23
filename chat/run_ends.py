"""What the events of an answer that has ended leave with its message, beside the parts. Pure."""

from collections.abc import Sequence
from dataclasses import asdict

from chat.events import (
    Failed,
    Finished,
    Found,
    FromCache,
    LeftOut,
    LogEvent,
    Refused,
    Stopped,
)


def left_out(events: Sequence[LogEvent]) -> dict[str, object] | None:
    """What the model was not shown at last, for the message."""
    told = [event for event in events if isinstance(event, LeftOut)]
    if not told:
        return None
    last = told[-1]
    return {
        "before": last.before,
        "num_messages": last.num_messages,
        "summary": last.summary,
        "stopped": list(last.stopped),
    }


def found(events: Sequence[LogEvent]) -> dict[str, object] | None:
    """What was found in documents, for the message."""
    found = next((event for event in events if isinstance(event, Found)), None)
    return None if found is None else found.kept()


def from_cache(events: Sequence[LogEvent]) -> dict[str, object] | None:
    cached = next((event for event in events if isinstance(event, FromCache)), None)
    if cached is None:
        return None
    return {
        "asked_at": cached.asked_at,
        "question": cached.question,
        "similarity": cached.similarity,
    }


def candidates(events: Sequence[LogEvent]) -> list[dict[str, object]] | None:
    found = next((event for event in events if isinstance(event, Found)), None)
    return None if found is None else list(found.candidates)


def summary_of(end: LogEvent) -> dict[str, object]:
    match end:
        case Finished(reason=reason, usage=usage, timings=timings):
            return {
                "finish_reason": reason,
                "usage": asdict(usage),
                "timings": asdict(timings),
            }
        case Stopped(usage=usage, timings=timings):
            return {
                "finish_reason": "stopped",
                "usage": asdict(usage),
                "timings": asdict(timings),
            }
        case Refused(code=code, message=message, stage=stage, decision=decision):
            error = {"code": code, "message": message, "stage": stage, "decision": decision}
            return {"finish_reason": "content_filter", "error": error}
        case Failed(code=code, message=message, trace_id=trace_id):
            named = {"code": code, "message": message, "trace_id": trace_id}
            return {"finish_reason": "error", "error": named}
    raise TypeError(end)
