"""What people type to find a chat: words, "phrases", -words and filters. Never raises."""

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, tzinfo

from django.utils.translation import gettext

MAX_QUERY_CHARS = 400
MAX_UNITS = 16

_PIECE = re.compile(
    r"""(?P<minus>-?)(?:(?P<name>[a-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<plain>[^\s"]\S*))?""",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_YES = {"", "yes", "true", "1"}
_NO = {"no", "false", "0"}
FILTERS = ("tag", "folder", "pinned", "archived", "before", "after")


@dataclass(frozen=True, slots=True)
class Unit:
    """A word or phrase to look for, or to do without. An exact one is no beginning of a word."""

    text: str
    is_exact: bool = False
    is_unwanted: bool = False


@dataclass(slots=True)
class SearchQuery:
    """`before` and `after` are moments; `problems` says in words what was not understood."""

    units: list[Unit] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    pinned: bool | None = None
    archived: bool | None = None
    before: datetime | None = None
    after: datetime | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def has_filters(self) -> bool:
        chosen = (self.pinned, self.archived, self.before, self.after)
        return bool(self.tags or self.folders) or any(value is not None for value in chosen)


def parse(text: str, zone: tzinfo) -> SearchQuery:
    """Read a query; days begin in `zone`. A filter that is no filter is a word like any other."""
    query = SearchQuery()
    for piece in _PIECE.finditer(text[:MAX_QUERY_CHARS]):
        name = (piece["name"] or "").lower()
        value = piece["plain"] if piece["quoted"] is None else piece["quoted"]
        if name in FILTERS and not piece["minus"]:
            _add_filter(query, name, (value or "").strip(), zone)
        elif piece["quoted"] is not None and not name:
            _add_unit(query, Unit(piece["quoted"], True, bool(piece["minus"])))
        elif word := piece[0].removeprefix("-").replace('"', " ").strip():
            _add_unit(query, Unit(word, False, bool(piece["minus"])))
    return query


def _add_unit(query: SearchQuery, unit: Unit) -> None:
    if not unit.text.strip():
        return
    if len(query.units) < MAX_UNITS:
        query.units.append(unit)
    else:
        text = gettext("Only the first %(n)s words are looked for.")
        _complain(query, text % {"n": MAX_UNITS})


def _add_filter(query: SearchQuery, name: str, value: str, zone: tzinfo) -> None:
    if name == "tag" and value:
        query.tags.append(value)
    elif name == "folder" and value:
        query.folders.append(value)
    elif name in ("tag", "folder"):
        text = gettext(
            '%(filter)s needs a name, in quotes where it has spaces: %(filter)s"two words".'
        )
        _complain(query, text % {"filter": f"{name}:"})
    elif name in ("pinned", "archived"):
        _add_choice(query, name, value.lower())
    else:
        _add_moment(query, name, value, zone)


def _add_choice(query: SearchQuery, name: str, value: str) -> None:
    if value in _YES | _NO:
        setattr(query, name, value in _YES)
    else:
        _complain(query, gettext("%(filter)s is yes or no.") % {"filter": f"{name}:"})


def _add_moment(query: SearchQuery, name: str, value: str, zone: tzinfo) -> None:
    """before:2026-03 ends where March begins; after:2026-03 begins where March ends."""
    days = _days_of(value)
    if days is None:
        text = gettext("%(filter)s needs a date such as 2026, 2026-03 or 2026-03-31.")
        _complain(query, text % {"filter": f"{name}:"})
        return
    first, behind = days
    day = first if name == "before" else behind
    setattr(query, name, datetime.combine(day, time.min, zone))


def _days_of(value: str) -> tuple[date, date] | None:
    """The first day of a year, month or day, and the first behind it."""
    match = _DATE.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    assert year is not None
    try:
        first = date(year, month or 1, day or 1)
        if month is None:
            return first, date(year + 1, 1, 1)
        if day is None:
            return first, date(year + month // 12, month % 12 + 1, 1)
        return first, date.fromordinal(first.toordinal() + 1)
    except ValueError:
        return None


def _complain(query: SearchQuery, problem: str) -> None:
    if problem not in query.problems:
        query.problems.append(problem)
