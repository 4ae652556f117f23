"""Patterns that an operator can read and write, by RE2: linear in the text, whatever the pattern.

Python's own `re` would take years for a pattern such as `(a+)+$` on a hostile text; RE2 has no such
pattern, and refuses those that it cannot compile within its memory.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from moderation.normalising import Normal, normalised

MAX_PATTERN_CHARS = 1_000
MAX_PATTERN_BYTES = 1 << 20  # of memory, for each; RE2's unit of "program size"
MAX_PROGRAM = 6_000  # instructions; `[\s\S]{1000}` three times has 21,000, and takes seconds
MAX_ANY_BYTES = 8 << 20  # of memory, for what tells whether any rule matches
MAX_ANY_PROGRAM = 20_000
MAX_MATCHES = 10_000  # of one rule in one text
MAX_TRIED = 20_000  # parts of what one rule has matched in one text, and its check refused
_CARD_DIGITS = range(13, 20)
_ACCOUNT_CHARS = range(15, 35)
_IN_GROUPS = {"card": _CARD_DIGITS, "iban": _ACCOUNT_CHARS}  # numbers that are written in groups
_MAX_NUMBER_CHARS = 42  # of the longest IBAN with a space behind each fourth character
_GROUP_CHARS = (
    4  # at the least, but for the last one: dates and tables of numbers have shorter ones
)
_QUOTE = r"\Q"
_GROUP = re.compile(r"\w+", re.ASCII)
_NO_DIGITS = re.compile(r"\D+")
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # the sum of the digits of twice as much
_ACCOUNT = re.compile(r"[A-Z]{2}\d\d[A-Z\d]+", re.ASCII)
_LETTERS_AS_DIGITS = {ord(one): str(int(one, 36)) for one in string.ascii_uppercase}


class BadRule(ValueError):
    """The message says to its author why the pattern cannot be used."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What matches `pattern` and passes `check` (one of CHECKS; "": none) is of the category, with this
    probability."""

    name: str
    category: str
    pattern: str
    probability: float = 1.0
    check: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """Characters `start` to `end` of the text as it was written."""

    rule: str
    category: str
    probability: float
    start: int
    end: int


def compiled(rule: Rule) -> Any:
    """Raises BadRule."""
    if not rule.pattern.strip():
        raise BadRule("The pattern is empty.")
    if len(rule.pattern) > MAX_PATTERN_CHARS:
        raise BadRule(f"The pattern is longer than {MAX_PATTERN_CHARS:,} characters.")
    if rule.check and rule.check not in CHECKS:
        raise BadRule(f"There is no check '{rule.check}'.")
    if not 0 < rule.probability <= 1:
        raise BadRule("The probability is above 0 and at most 1.")
    try:
        pattern = re2.compile(rule.pattern, _options())
    except re2.error as error:
        reason = error.args[0]
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadRule(f"This is no pattern of RE2: {words}.") from None
    if pattern.search("") is not None:
        raise BadRule("The pattern matches where there is nothing, and so everywhere.")
    return pattern


def tried(rule: Rule) -> "Rules":
    """One that is about to be saved. Linear in the text may still be too slow: each character can cost
    as much as the pattern has instructions. One that is in force already goes on, as costly as it is.

    Raises BadRule."""
    if compiled(rule).programsize > MAX_PROGRAM:
        raise BadRule("The pattern is too costly: it counts too far, or too much at once.")
    return Rules([rule])


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.log_errors = False
    return options


class Rules:
    """Several rules; a text is judged by all of them."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Raises BadRule."""
        self._compiled = [(rule, compiled(rule)) for rule in rules]
        self._any = _any_of(self._compiled)

    def find(self, written: str | Normal) -> list[Match]:
        """All that matches, in the order of the text. The last of MAX_MATCHES of a rule reaches to its
        end: what is behind so many is not hidden by them."""
        normal = written if isinstance(written, Normal) else normalised(written)
        matches: list[Match] = []
        # In most texts nothing is found, as one pass tells.
        if self._any is not None and not self._any.search(normal.text):
            return matches
        # One after the other: RE2's sets answer all at once, but tell no match where memory runs out.
        for rule, pattern in self._compiled:
            for start, end in _spans(rule, pattern, normal.text):
                at, to = normal.span(start, end)
                matches.append(Match(rule.name, rule.category, rule.probability, at, to))
        return sorted(matches, key=lambda match: (match.start, match.end, match.rule))

    def scores(self, texts: Sequence[str | Normal]) -> list[dict[str, float]]:
        """The highest probability of each category that a rule matches for, text by text."""
        scored = []
        for text in texts:
            found: dict[str, float] = {}
            for match in self.find(text):
                found[match.category] = max(found.get(match.category, 0.0), match.probability)
            scored.append(found)
        return scored


def _any_of(rules: Sequence[tuple[Rule, Any]]) -> Any:
    """What matches wherever one of them does; None where it would be large, or cannot be. As each of
    them it needs memory to be quick, and none to be right."""
    if len(rules) < 2 or sum(pattern.programsize for _, pattern in rules) > MAX_ANY_PROGRAM:
        return None
    if any(_QUOTE in rule.pattern for rule, _ in rules):  # which need not end with its pattern
        return None
    options = _options()
    options.max_mem = MAX_ANY_BYTES
    options.never_capture = True
    try:
        return re2.compile("|".join(f"(?:{rule.pattern})" for rule, _ in rules), options)
    except re2.error:
        return None


def _spans(rule: Rule, pattern: Any, text: str) -> Iterator[tuple[int, int]]:
    for num, (start, end) in enumerate(_checked(rule, pattern, text), 1):
        if num == MAX_MATCHES:
            yield start, len(text)
            return
        yield start, end


def _checked(rule: Rule, pattern: Any, text: str) -> Iterator[tuple[int, int]]:
    check = CHECKS.get(rule.check)
    runs: _Runs | None = None
    if check is not None and rule.check in _IN_GROUPS:
        runs = _Runs(pattern, check, _IN_GROUPS[rule.check], text)
    for match in pattern.finditer(text):
        if not match.group():
            continue
        if check is None or check(match.group()):
            yield match.span()
        elif runs is not None:
            yield from runs.within(*match.span())


class _Runs:
    """Numbers that begin within a match that the check refused as a whole: it took what stands before
    or behind them, a date or a word, for a part of them. Of MAX_TRIED in one text."""

    def __init__(
        self, pattern: Any, check: Callable[[str], bool], num_chars: range, text: str
    ) -> None:
        self._pattern = pattern
        self._check = check
        self._num_chars = num_chars
        self._text = text
        self._num_left = MAX_TRIED

    def within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """From group to group, the longest of those that begin at the same place."""
        groups: list[tuple[int, int]] = []
        for group in _GROUP.finditer(self._text, start):
            if group.start() >= end + _MAX_NUMBER_CHARS:
                break
            groups.append(group.span())
        for place, (first, _) in enumerate(groups):
            if first >= end:
                return
            for last in reversed(self._ends(groups[place : place + self._num_chars.stop])):
                if self._num_left == 0:
                    return
                self._num_left -= 1
                run = self._text[first:last]
                if self._check(run) and self._pattern.fullmatch(run):
                    yield first, last
                    break

    def _ends(self, groups: Sequence[tuple[int, int]]) -> list[int]:
        """Where a number may end that begins with these."""
        ends: list[int] = []
        num_chars = 0
        for start, end in groups:
            num_chars += end - start
            if num_chars >= self._num_chars.stop or end - groups[0][0] > _MAX_NUMBER_CHARS:
                break
            if num_chars in self._num_chars:
                ends.append(end)
            if end - start < _GROUP_CHARS:
                break
        return ends


def _is_card_number(text: str) -> bool:
    """By the check digit of ISO/IEC 7812 (Luhn)."""
    written = _NO_DIGITS.sub("", text)
    if len(written) not in _CARD_DIGITS or len(set(written)) == 1:
        return False
    digits = list(map(int, written))
    doubled = map(_DOUBLED.__getitem__, digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """By the check digits of ISO 13616 (ISO 7064, mod 97-10)."""
    compact = "".join(text.split()).upper()
    if len(compact) not in _ACCOUNT_CHARS or _ACCOUNT.fullmatch(compact) is None:
        return False
    moved = compact[4:] + compact[:4]
    return int(moved.translate(_LETTERS_AS_DIGITS)) % 97 == 1


def _is_social_security_number(text: str) -> bool:
    """Of the United States: the numbers that were never given out are no one's (SSA, "Social Security
    Number Randomization")."""
    area, group, serial = re.split(r"\D", text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _is_random(text: str) -> bool:
    """At least three kinds of characters, and more than half of them different: no word, no filler."""
    value = re.split(r"[\s:='\"]+", text.strip("'\" "))[-1]
    kinds = [str.islower, str.isupper, str.isdigit]
    num_kinds = sum(any(map(kind, value)) for kind in kinds)
    return num_kinds >= 2 and len(set(value)) * 2 > min(len(value), 40)


CHECKS: dict[str, Callable[[str], bool]] = {
    "card": _is_card_number,
    "iban": _is_iban,
    "ssn": _is_social_security_number,
    "random": _is_random,
}
