"""What an answer did when: spans on one time axis, the trace that every answer opens.

The kinds are open: whoever adds a step to an answer begins a span of its own kind, and the interface
shows it by its name. Spans of one answer follow each other and never overlap, but for those of
moderation, which goes on beside the rest.
"""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Any

_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class Span:
    """One step of an answer, in milliseconds since it was asked for.

    Kinds so far: accepted (saved, and the run begun), prompt (built), loading (the model), queued,
    asking (another server), prefill, decode, tool, moderation, interrupted (the process died),
    saved (to the database). `facts` say more: counts with their unit in the name, a tool's `name`.
    """

    kind: str
    start_ms: float
    end_ms: float
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        times = {"start_ms": round(self.start_ms, 2), "end_ms": round(self.end_ms, 2)}
        return {"kind": self.kind, **times, "facts": self.facts}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Span":
        return cls(value["kind"], value["start_ms"], value["end_ms"], value["facts"])


class Clock:
    """Milliseconds since a moment that may lie in another process; from here on it never jumps."""

    def __init__(self, since: datetime | None = None) -> None:
        now = datetime.now(UTC)
        self._zero_ms = max(0.0, (now - (since or now)).total_seconds() * 1e3)
        self._started_s = monotonic()

    def now_ms(self) -> float:
        return self._zero_ms + (monotonic() - self._started_s) * 1e3


class Stopwatch:
    """One span at a time: to begin one ends the one before. `take` hands out those that have ended."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ended: list[Span] = []
        self._kind: str | None = None
        self._start_ms = 0.0
        self._facts: dict[str, Any] = {}

    def begin(self, kind: str, *, ago_ms: float = 0.0, **facts: Any) -> None:
        """Begin a span, or add facts to the open one of the same kind.

        `ago_ms`: it began so long ago, though not before the open one did.
        """
        if kind == self._kind:
            self._facts |= facts
            return
        now_ms = self.clock.now_ms()
        start_ms = max(now_ms - ago_ms, self._start_ms) if self._kind else now_ms
        self._end_at(start_ms)
        self._kind, self._start_ms, self._facts = kind, start_ms, dict(facts)

    def is_in(self, kind: str) -> bool:
        """Whether the open span is of this kind."""
        return self._kind == kind

    def note(self, **facts: Any) -> None:
        """Add facts to the open span."""
        self._facts |= facts

    def end(self) -> None:
        """End the open span, if there is one."""
        self._end_at(self.clock.now_ms())

    def _end_at(self, end_ms: float) -> None:
        if self._kind is not None:
            self._ended.append(Span(self._kind, self._start_ms, end_ms, self._facts))
        self._kind = None

    def take(self) -> list[Span]:
        """Spans that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended


class Trace:
    """The trace of one run: its id is the W3C trace id that its log lines carry as `request_id`."""

    def __init__(self, clock: Clock, trace_id: str, spans: Iterable[Span] = ()) -> None:
        self.clock = clock
        self.id = trace_id
        self.spans = list(spans)
        self.is_saved = False

    @classmethod
    def from_json(cls, value: dict[str, Any], clock: Clock) -> "Trace":
        """One that another process has begun, or an empty value's: with a new id."""
        spans = map(Span.from_json, value.get("spans", ()))
        return cls(clock, value.get("id") or new_trace_id(), spans)

    @property
    def end_ms(self) -> float:
        """Up to when it is known what the answer did."""
        return max((span.end_ms for span in self.spans), default=0.0)

    def add(self, span: Span) -> None:
        self.spans.append(span)
        self.is_saved = False

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "spans": [span.to_json() for span in self.spans]}


def new_trace_id() -> str:
    return secrets.token_hex(16)


def trace_id_of(traceparent: object) -> str | None:
    """The trace id in a `traceparent`; None for what is none. Source: W3C Trace Context, 3.2."""
    match = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return match[1] if match and match[1] != "0" * 32 else None
