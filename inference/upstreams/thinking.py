"""Thoughts that a server leaves in the text, between <think> and </think> at its beginning."""

from inference.call_forms import THINK_CLOSE, THINK_OPEN
from inference.parsing import Reasoning, Segment, Text


class ThinkingSplitter:
    """Text in, text and reasoning out; the same for any chunking. White space by a mark is dropped."""

    def __init__(self) -> None:
        self._held = ""
        self._mark = THINK_OPEN  # the one that is looked for; "" once there is none to come
        self._is_behind_mark = False

    def feed(self, text: str) -> list[Segment]:
        self._held += text
        if self._mark == THINK_OPEN:
            begun = self._held.lstrip()
            if begun.startswith(THINK_OPEN):
                self._pass_mark(THINK_CLOSE, begun.removeprefix(THINK_OPEN))
            elif THINK_OPEN.startswith(begun):
                return []  # it may still become one
            else:
                self._mark = ""
        if self._is_behind_mark:
            self._held = self._held.lstrip()
            self._is_behind_mark = not self._held
        if self._mark != THINK_CLOSE:
            return _nonempty(Text(self._take(len(self._held))))
        thought, mark, rest = self._held.partition(THINK_CLOSE)
        if not mark:
            return _nonempty(Reasoning(self._take(self._num_safe())))
        self._pass_mark("", rest)
        return _nonempty(Reasoning(thought.rstrip()), *self.feed(""))

    def finish(self) -> list[Segment]:
        """What was held back because a mark could have come of it."""
        held = self._take(len(self._held))
        return _nonempty(Reasoning(held) if self._mark == THINK_CLOSE else Text(held))

    def _pass_mark(self, next_mark: str, rest: str) -> None:
        self._mark, self._held, self._is_behind_mark = next_mark, rest, True

    def _num_safe(self) -> int:
        """All but an end that could be the beginning of the closing mark, or the space before it."""
        safe = self._held
        for length in range(min(len(THINK_CLOSE) - 1, len(safe)), 0, -1):
            if THINK_CLOSE.startswith(safe[-length:]):
                safe = safe[:-length]
                break
        return len(safe.rstrip())

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken


def _nonempty(*segments: Segment) -> list[Segment]:
    return [s for s in segments if not isinstance(s, Text | Reasoning) or s.text]
