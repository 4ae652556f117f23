"""What the two protocols have in common: a body to send, and a reader of the events that come back."""

import json
from dataclasses import replace
from typing import Any, Protocol

from inference.call_forms import Call, loaded
from inference.messages import FinishReason, Usage
from inference.parsing import Segment, Text

_MOST_TOKENS = 2**31


class Reader(Protocol):
    """Reads one streamed answer.

    `reason` is set once the server has said that the answer is whole; a stream that ends before has
    broken off. `stop` is the stop string that it names, if it names one.
    """

    @property
    def reason(self) -> FinishReason | None: ...

    @property
    def stop(self) -> str | None: ...

    @property
    def usage(self) -> Usage: ...

    @property
    def is_over(self) -> bool:
        """Nothing more will come, though the connection may stay open."""
        ...

    def read(self, kind: str, data: str) -> list[Segment]:
        """What an event adds. Raises Problem, or what malformed data raises."""
        ...

    def finish(self) -> list[Segment]:
        """What was held back."""
        ...


class Halves:
    """Joins characters that were cut in two: servers and proxies that count in UTF-16 cut there."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """All but a first half at the end."""
        text = self._held + text
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return whole(text[: len(text) - len(self._held)])

    def finish(self) -> str:
        held, self._held = self._held, ""
        return whole(held)


def whole(text: str) -> str:
    """Two halves of a character as one, and a lone one as an unknown one."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def call_or_text(name: str, arguments: str) -> Segment:
    """A tool call, or its text where the arguments are no JSON object: a model's mistake is no error."""
    arguments = whole(arguments)
    value = loaded(arguments or "{}")
    if name and isinstance(value, dict):
        return Call(name, json.dumps(value, ensure_ascii=False))
    return Text(f"{name}({arguments})")


class Continued:
    """A reader of what follows a text: white space that stands at its end is not said again.

    Some protocols refuse it there, so the server begins with it once more. `num_said` are the tokens
    that others have said of this answer: the usage counts them.
    """

    def __init__(self, reader: Reader, begun: str, num_said: int = 0) -> None:
        self._reader = reader
        self._num_said = num_said
        self._space = begun[len(begun.rstrip()) :]

    @property
    def reason(self) -> FinishReason | None:
        return self._reader.reason

    @property
    def stop(self) -> str | None:
        return self._reader.stop

    @property
    def usage(self) -> Usage:
        usage = self._reader.usage
        if not usage.completion_tokens:
            return usage  # the server counts nothing
        return replace(usage, completion_tokens=usage.completion_tokens + self._num_said)

    @property
    def is_over(self) -> bool:
        return self._reader.is_over

    def read(self, kind: str, data: str) -> list[Segment]:
        return self._fresh(self._reader.read(kind, data))

    def finish(self) -> list[Segment]:
        return self._fresh(self._reader.finish())

    def _fresh(self, segments: list[Segment]) -> list[Segment]:
        fresh: list[Segment] = []
        for segment in segments:
            if self._space and isinstance(segment, Text):
                text = segment.text
                while self._space and text and text[0] == self._space[0]:
                    text, self._space = text[1:], self._space[1:]
                if text:
                    self._space = ""
                    fresh.append(Text(text))
            else:
                fresh.append(segment)
        return fresh


def count_of(values: Any, *path: str) -> int:
    """A count somewhere in the usage that a server reports; 0 where it reports none, or one that no
    request takes and no ledger holds."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    is_count = isinstance(values, int) and not isinstance(values, bool)
    return values if is_count and 0 <= values <= _MOST_TOKENS else 0
