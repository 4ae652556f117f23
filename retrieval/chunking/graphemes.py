"""Where a text may be cut: never inside of what a reader sees as one character."""

import unicodedata
from functools import cache
from typing import Any

_STEP = 256
_LOOK_AHEAD = 64  # so that the last character is seen to end
# Unlikely to be within a character: letters and signs of one code point, that nothing joins to what
# stands behind them. Others (flags, emoji, Hangul in parts) are looked at from a place before.
_SIMPLE = frozenset({"Lu", "Ll", "Nd", "Po", "Pe", "Pf", "Pi", "Ps", "Zs", "Sc", "Sm"})


@cache
def _cluster() -> Any:
    import regex  # takes 30 ms, and most texts never need it

    return regex.compile(r"\X")


def may_cut(text: str, place: int) -> bool:
    """Whether a character ends here; also False where that takes a look at more than the one before."""
    if place <= 0 or place >= len(text) or text[place - 1] == "\n":
        return True
    if text[place - 1] in " \t.!?,;:" and text[place].isascii():
        return True
    if unicodedata.category(text[place - 1]) not in _SIMPLE and text[place - 1] not in "\t\r":
        return False
    found = _cluster().match(text[place - 1 : place + 8])
    return bool(found and found.end() == 1)


def holds_space(text: str, place: int) -> bool:
    """Whether the white space here belongs to the character before: a few signs take what follows."""
    before = text[place - 1]
    if before.isascii() or unicodedata.category(before) in _SIMPLE:
        return False
    return bool(_cluster().match(text[place - 1 : place + 1]).end() == 2)


def last_cut(text: str, start: int, most: int) -> int:
    """The last place after `start`, up to `most`, where a character ends; `start` must be such a place.

    `most` itself where one character is longer than all that.
    """
    place = start
    while place < most:
        # A part of its own: in a row of flags \X looks back to the beginning, each time.
        step = min(_STEP, most - place)
        ends = (
            found.end() for found in _cluster().finditer(text[place : place + step + _LOOK_AHEAD])
        )
        cut = max((end for end in ends if end <= step), default=0)
        if not cut:
            break
        place += cut
    return place if place > start else most
