"""Frames of several steps as one, where steps are faster than anybody reads.

Each frame costs the web process some hundred microseconds for every stream in it: with 64 streams of
50 tokens per second that is more than writing the answers down. What somebody waits for goes at once:
a first token, an end, progress; the tokens of other streams stay for the next frame of theirs.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeGuard

from inference.messages import (
    EngineStats,
    Failed,
    Finished,
    GenerateRequest,
    Reply,
    StepFrame,
    Tokens,
)

MOST_S = 0.1
MOST_ON_GPU_S = 0.05  # there the web process has processors of its own
MOST_PATIENT_S = 0.2
CALM_S = 0.1
_PER_STREAM_S = 0.001
_PER_PATIENT_STREAM_S = 0.002

_Updates = list[tuple[str, Reply]]


class Gathering:
    """Holds frames until they are due. Times are those of one monotonic clock, in seconds.

    `gather_s` passes at least between two frames of mere tokens, and a millisecond more for each
    stream, up to `most_s`; where a step takes longer than that, nothing is held. 0: never.
    A request's own `patience_s` stands in the place of that, or two milliseconds for each stream,
    whichever is longer, up to MOST_PATIENT_S; those of one patience come in one frame. Where another
    request has come less than CALM_S ago, they wait for that as well: who waits for a first word is
    served before who has one, and in a burst what has begun would be in the way of what begins.
    """

    def __init__(self, gather_s: float) -> None:
        self.most_s = MOST_S
        self._gather_s = gather_s
        self._patience_s: dict[str, float] = {}  # of requests that have one
        self._held: dict[float, _Updates] = {}  # by patience
        self._begun_s = 0.0  # when a request came last
        self._taken_s: defaultdict[float, float] = defaultdict(float)
        self._stats = EngineStats()
        self._has_news = False  # whether the newest state has not been taken
        self._streams: set[str] = set()  # those whose first tokens have been sent
        self._urgent: set[str] = set()

    def expect(self, request: GenerateRequest, now_s: float) -> None:
        """Before anything of it is added; also from another thread."""
        self._begun_s = now_s
        if request.patience_s:
            self._patience_s[request.request_id] = request.patience_s

    def add(self, frame: StepFrame) -> None:
        for request_id, update in frame.updates:
            patience_s = self._patience_s.get(request_id, 0.0)
            self._held.setdefault(patience_s, []).append((request_id, update))
            if isinstance(update, Tokens) and request_id in self._streams:
                continue
            self._urgent.add(request_id)
            if isinstance(update, Tokens):
                self._streams.add(request_id)
            else:
                self._streams.discard(request_id)
            if isinstance(update, Finished | Failed):
                self._patience_s.pop(request_id, None)
        self._stats, self._has_news = frame.stats, True

    @property
    def due_s(self) -> float | None:
        """When to take what is held; None: nothing is."""
        if self._urgent or (self._has_news and not self._gather_s):
            return 0.0
        if self._held:
            return min(map(self._due_s, self._held))
        return self._due_s(0.0) if self._has_news else None

    def _due_s(self, patience_s: float) -> float:
        num_streams, taken_s = len(self._streams), self._taken_s[patience_s]
        if not patience_s:
            return taken_s + min(self.most_s, self._gather_s + _PER_STREAM_S * num_streams)
        usual_s = max(patience_s, _PER_PATIENT_STREAM_S * num_streams)
        return min(taken_s + MOST_PATIENT_S, max(taken_s + usual_s, self._begun_s + CALM_S))

    def take(self, now_s: float, *, everything: bool = False) -> StepFrame:
        """What is due of that which is held, or `everything`, as one frame with the newest state."""
        taken: _Updates = []
        for patience_s in list(self._held):
            if everything or not self._gather_s or self._due_s(patience_s) <= now_s:
                taken += self._held.pop(patience_s)
                self._taken_s[patience_s] = now_s
            elif self._urgent:
                taken += self._take_urgent(patience_s)
        self._urgent.clear()
        self._has_news = False
        if not taken:
            self._taken_s[0.0] = now_s
        return StepFrame(tuple(_merged(taken)), self._stats)

    def _take_urgent(self, patience_s: float) -> _Updates:
        held = self._held.pop(patience_s)
        if others := [each for each in held if each[0] not in self._urgent]:
            self._held[patience_s] = others
        return [each for each in held if each[0] in self._urgent]


def _merged(updates: Iterable[tuple[str, Reply]]) -> list[tuple[str, Reply]]:
    """Mere text of one stream that follows itself becomes one update.

    With probabilities each stays as it is: those of the last thought must not go with the first word.
    """
    merged: list[tuple[str, Reply]] = []
    places: dict[str, int] = {}
    for request_id, update in updates:
        place = places.get(request_id, -1)
        before = merged[place][1] if place >= 0 else None
        if _is_text(before) and _is_text(update):
            merged[place] = request_id, _joined(before, update)
        else:
            places[request_id] = len(merged)
            merged.append((request_id, update))
    return merged


def _is_text(update: Reply | None) -> TypeGuard[Tokens]:
    return isinstance(update, Tokens) and not update.logprobs


def _joined(before: Tokens, after: Tokens) -> Tokens:
    return replace(after, text=before.text + after.text, ids=before.ids + after.ids)
