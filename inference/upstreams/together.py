"""What a server says in a moment, handed over together.

A server sends each token by itself, and what follows on one (a turn, a policy's look, a frame for the
reader) costs about as much for one as for five. So the first words go on at once, and later ones as
those of our own engine do (see `inference.gathering`): a few times a second, less often the more answers
are under way.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Self

from inference.call_forms import Call
from inference.parsing import Reasoning, Segment, Text
from inference.upstreams.messages import Said

_GATHER_S = 0.03
_PER_ANSWER_S = 0.001
MOST_S = 0.1
_STOP = re.compile(r"[.!?…。！？\n]")


class Together:
    """Lives on one event loop, for one answer. However reading ends, what was read has been said: leave
    it before anything else is told of the answer."""

    def __init__(self, hear: Callable[[Said], None], num_answers: Callable[[], int]) -> None:
        self._hear = hear
        self._num_answers = num_answers
        self._loop = asyncio.get_running_loop()
        self._pending: list[Segment] = []
        self._due_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()

    def say(self, segments: Iterable[Segment]) -> None:
        self._pending += segments
        if not self._pending or self._timer is not None:
            return
        if self._loop.time() >= self._due_s:
            self.flush()
        else:
            self._timer = self._loop.call_at(self._due_s, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            pending, self._pending = self._pending, []
            wait_s = _GATHER_S + _PER_ANSWER_S * self._num_answers()
            self._due_s = self._loop.time() + min(MOST_S, wait_s)
            self._hear(Said(tuple(joined(pending))))


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """With neighbours of one kind as one, up to where a sentence may end: policies judge what is written
    sentence by sentence, and one that is stopped is not to take those before it along."""
    found: list[Segment] = []
    texts: list[str] = []
    kind: type[Text] | type[Reasoning] = Text

    def close() -> None:
        if texts:
            found.append(kind("".join(texts)))
            texts.clear()

    for segment in segments:
        if isinstance(segment, Call):
            close()
            found.append(segment)
            continue
        if type(segment) is not kind:
            close()
            kind = type(segment)
        texts.append(segment.text)
        if _STOP.search(segment.text):
            close()
    close()
    return found
