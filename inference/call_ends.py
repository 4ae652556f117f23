"""Where a written call ends: not at a closing mark that a string of its JSON spells."""

import re
from collections.abc import Callable
from typing import Any, Literal

from transformers.utils.chat_parsing import ResponseParser
from transformers.utils.chat_parsing.response_templates import (
    ResponseTemplate,
    ResponseTemplateField,
)

_REST_OF_STRING = re.compile(r'(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*+("|\\?\Z)?')
_TAGGED = re.compile(r"\s*<function=")
Delimiter = tuple[str, ResponseTemplateField, Any]
State = Literal["outside", "in a string", "no JSON"]


class _Strings:
    """Where the strings of a text stand that grows and is JSON, perhaps. Each part is read once."""

    def __init__(self) -> None:
        self._place, self._is_inside = 0, False

    def state_behind(self, text: str) -> State:
        """`text` is all that there is up to some place."""
        if len(text) < self._place:
            self._place, self._is_inside = 0, False
        while True:
            if not self._is_inside:
                quote = text.find('"', self._place)
                if quote < 0:
                    self._place = len(text)
                    return "outside"
                self._place, self._is_inside = quote + 1, True
            rest = _REST_OF_STRING.match(text, self._place)
            assert rest is not None
            if rest[1] != '"':
                # Half an escape at the end is read again.
                self._place = rest.end() if rest[1] is None else rest.start(1)
                return "no JSON" if rest[1] is None else "in a string"
            self._place, self._is_inside = rest.end(), False


class CallParser(ResponseParser):
    """The parser of transformers, which takes the first closing mark that it finds.

    `reads` tells whether what stands between the marks is a call. Where a mark stands in a string, the
    next one outside of strings is the end, if that makes a call; else it is the first one after all.
    An event that closes a region says whether the end of the text did (`is_cut`).
    """

    def __init__(
        self, template: ResponseTemplate, *, prefix: str, reads: Callable[[str], bool]
    ) -> None:
        self._reads = reads
        self._is_cut = False
        # A place in the buffer: marks of this call before it stand in strings, this first one too.
        self._in_strings_to = 0
        self._first: Delimiter | None = None
        self._strings = _Strings()
        super().__init__(template, prefix=prefix)

    def _scan(
        self, watch: list[tuple[str, ResponseTemplateField]], eos: bool
    ) -> tuple[Delimiter | None, int]:
        found = self._first
        hold_start = len(self._buffer)
        if found is None:
            found, hold_start = super()._scan(watch, eos)
        if found is not None and found[0] == "close" and found[1].name == "tool_call":
            hold_start = found[2].start()
            found = self._end_of_call(found, watch, eos)
        self._is_cut = found is None
        return found, hold_start

    def _end_of_call(
        self, first: Delimiter, watch: list[tuple[str, ResponseTemplateField]], eos: bool
    ) -> Delimiter | None:
        """None: the text's own end, or it is not told yet, and nothing from the first mark on may be
        handed over."""
        start = self._pos
        found: Delimiter | None = first
        try:
            if first is self._first:
                found = self._next(watch, eos)
            while found and self._state_before(found[2].start(), start) == "in a string":
                self._first = first
                # Some marks have no length: they are the next call's.
                self._in_strings_to = max(found[2].end(), found[2].start() + 1)
                found = self._next(watch, eos)
        finally:
            self._pos = start
        if found is first:
            return first
        if found is None and not eos:
            is_hopeless = self._state_before(len(self._buffer), start) == "no JSON"
            return first if is_hopeless else None
        end = len(self._buffer) if found is None else found[2].start()
        return found if self._reads(self._body + self._buffer[start:end]) else first

    def _next(self, watch: list[tuple[str, ResponseTemplateField]], eos: bool) -> Delimiter | None:
        """The first mark behind those in strings. What holds none is looked through once."""
        self._pos = self._in_strings_to
        found, hold_start = super()._scan(watch, eos)
        if found is None:
            self._in_strings_to = max(self._in_strings_to, hold_start)
        return found

    def _close_current(self, events: list[dict[str, Any]]) -> None:
        num_before = len(events)
        super()._close_current(events)
        self._in_strings_to, self._first = 0, None
        self._strings = _Strings()
        for event in events[num_before:]:
            event["is_cut"] = self._is_cut

    def _state_before(self, end: int, start: int) -> State:
        """Of a call's text up to a place in the buffer."""
        text = self._body + self._buffer[start:end]
        if _TAGGED.match(text):
            return "outside"  # no JSON, but tags
        return self._strings.state_behind(text)
