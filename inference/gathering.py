"""Frames of several steps as one, where steps are faster than anybody reads.

Each frame costs the web process some hundred microseconds for every stream in it: with 64 streams of
50 tokens per second that is more than writing the answers down. What somebody waits for goes at once:
a first token, an end, progress.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeGuard

from inference.messages import EngineStats, Reply, StepFrame, Tokens

MOST_S = 0.1
MOST_ON_GPU_S = 0.05  # there the web process has processors of its own


class Gathering:
    """Holds frames until they are due. Times are those of one monotonic clock, in seconds.

    `gather_s` passes at least between two frames of mere tokens, and a millisecond more for each
    stream, up to `most_s`; where a step takes longer than that, nothing is held. 0: never.
    """

    def __init__(self, gather_s: float) -> None:
        self.most_s = MOST_S
        self._gather_s = gather_s
        self._updates: list[tuple[str, Reply]] = []
        self._stats: EngineStats | None = None
        self._streams: set[str] = set()  # those whose first tokens have been sent
        self._is_urgent = False
        self._taken_s = 0.0

    def add(self, frame: StepFrame) -> None:
        for request_id, update in frame.updates:
            if not isinstance(update, Tokens):
                self._is_urgent = True
                self._streams.discard(request_id)
            elif request_id not in self._streams:
                self._is_urgent = True
                self._streams.add(request_id)
            self._updates.append((request_id, update))
        self._stats = frame.stats

    @property
    def due_s(self) -> float | None:
        """When to take what is held; None: nothing is."""
        if self._stats is None:
            return None
        if self._is_urgent or not self._gather_s:
            return 0.0
        return self._taken_s + min(self.most_s, self._gather_s + 0.001 * len(self._streams))

    def take(self, now_s: float) -> StepFrame:
        """All that is held, as one frame with the newest state."""
        assert self._stats is not None
        frame = StepFrame(tuple(_merged(self._updates)), self._stats)
        self._updates, self._stats, self._is_urgent = [], None, False
        self._taken_s = now_s
        return frame


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
