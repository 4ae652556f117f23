"""JSON files of any size, one value at a time, in the memory of the largest value.

A file is a list of values, one object, or several of either. The items of an object's list under a
`streamed` key come one by one as well. Only the structure is looked at here; `json` reads the values.
"""

import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 5_000
TOO_LARGE = "It is too large."
_OUTER = re.compile(rb'["\[\]{},:]')
_INNER = re.compile(rb'["\[\]{}]')
_STRING = re.compile(rb'["\\]')
_PAIRS = {ord("]"): ord("["), ord("}"): ord("{")}
_LIST, _OBJECT = ord("["), ord("{")


class BadJson(ValueError):
    """The file's structure is broken; what came before is good."""


class Unreadable(ValueError):
    """One value is, and the file goes on behind it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A value of a list (`key` is None), of an object, or of the streamed list under `key`.

    `end`: no value, but the end of an object.
    """

    raw: bytes
    key: str | None = None
    is_streamed: bool = False
    is_too_large: bool = False
    is_end: bool = False

    def value(self) -> Any:
        """Raises Unreadable."""
        if self.is_too_large:
            raise Unreadable(TOO_LARGE)
        try:
            return json.loads(self.raw, parse_constant=_no_constant)
        except RecursionError:
            raise Unreadable("It is nested too deeply.") from None
        except ValueError:
            raise Unreadable("It is no valid JSON.") from None


def items(
    chunks: Iterable[bytes], *, streamed: tuple[str, ...] = (), max_item_bytes: int
) -> Iterator[Item]:
    """The values of a file in UTF-8. Raises BadJson where its structure breaks."""
    reader = _Reader(streamed, max_item_bytes)
    for chunk in chunks:
        yield from reader.feed(chunk)
    if reader.stack or reader.in_string:
        raise BadJson("The file ends in the middle of a value.")
    if not reader.has_begun:
        raise BadJson("The file is no JSON.")


@dataclass
class _Reader:
    streamed: tuple[str, ...]
    max_item_bytes: int
    stack: bytearray = field(default_factory=bytearray)  # the brackets that are open
    item: bytearray = field(default_factory=bytearray)
    key: str | None = None
    item_depth: int = 1
    in_string: bool = False
    is_escaped: bool = False
    is_too_large: bool = False
    has_begun: bool = False

    def feed(self, chunk: bytes) -> Iterator[Item]:
        at = start = 0
        if not self.has_begun:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        while True:
            if self.in_string:
                at = self._skip_string(chunk, at)
            if self.in_string:
                break
            found = (_INNER if len(self.stack) > self.item_depth else _OUTER).search(chunk, at)
            if found is None:
                break
            at, sign = found.end(), found[0][0]
            if sign == ord('"') and self.stack:
                self.in_string = True
            elif sign in (_LIST, _OBJECT):
                start = self._open(chunk, start, at, sign)
            elif sign in _PAIRS:
                start = yield from self._close(chunk, start, at, sign)
            elif len(self.stack) == self.item_depth and sign == ord(","):
                self._take(chunk[start : at - 1])
                yield from self._emit()
                start = at
            elif sign == ord(":") and self._awaits_key():
                self._take(chunk[start : at - 1])
                self._read_key()
                start = at
            elif not self.stack:
                raise BadJson("The file is no JSON.")
        if len(self.stack) >= self.item_depth:
            self._take(chunk[start:])
        elif chunk[start:].strip():
            raise BadJson("The file is no JSON.")

    def _skip_string(self, chunk: bytes, at: int) -> int:
        while at < len(chunk):
            if self.is_escaped:
                self.is_escaped = False
                at += 1
                continue
            found = _STRING.search(chunk, at)
            if found is None:
                break
            at = found.end()
            if found[0] == b'"':
                self.in_string = False
                break
            self.is_escaped = True
        return at

    def _open(self, chunk: bytes, start: int, at: int, sign: int) -> int:
        if not self.stack and chunk[start : at - 1].strip():
            raise BadJson("The file is no JSON.")
        self.has_begun = True
        if len(self.stack) >= MAX_DEPTH:
            raise BadJson(f"The file is nested more than {MAX_DEPTH:,} times.")
        self.stack.append(sign)
        begins_streamed = (
            len(self.stack) == 2
            and self.item_depth == 1
            and sign == _LIST
            and self.key in self.streamed
            and not (self.item + chunk[start : at - 1]).strip()
        )
        if begins_streamed:
            self.item_depth = 2
            self.item.clear()
        return at if len(self.stack) == 1 or begins_streamed else start

    def _close(self, chunk: bytes, start: int, at: int, sign: int) -> Generator[Item, None, int]:
        if not self.stack or self.stack.pop() != _PAIRS[sign]:
            raise BadJson("The file's brackets do not match.")
        depth = len(self.stack)
        if depth >= self.item_depth:
            return start
        self._take(chunk[start : at - 1])
        yield from self._emit()
        if depth == 1:  # of a streamed list; its object goes on
            self.item_depth, self.key = 1, None
        elif sign == ord("}"):
            yield Item(b"", is_end=True)
        return at

    def _awaits_key(self) -> bool:
        is_at_key = len(self.stack) == 1 and self.stack[0] == _OBJECT
        return is_at_key and self.key is None

    def _read_key(self) -> None:
        try:
            key = json.loads(bytes(self.item))
        except ValueError:
            key = None
        if not isinstance(key, str):
            raise BadJson("The file is no valid JSON.")
        self.key = key
        self.item.clear()

    def _take(self, piece: bytes) -> None:
        if self.is_too_large:
            return
        if len(self.item) + len(piece) > self.max_item_bytes:
            self.is_too_large = True
            self.item.clear()
        else:
            self.item += piece

    def _emit(self) -> Iterator[Item]:
        raw, key, is_too_large = bytes(self.item), self.key, self.is_too_large
        self.item.clear()
        self.is_too_large = False
        is_streamed = self.item_depth == 2
        if not is_streamed:
            self.key = None
        if raw.strip() or is_too_large:
            yield Item(raw, key, is_streamed, is_too_large)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
