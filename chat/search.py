"""Search over all of one's chats: what was said and what they are called, best first.

Matches are looked at in windows, the newest `WINDOW` of them first; within a window a chat's rank
decides, then its age, and each chat is listed once, at its best message. So a word that is everywhere
costs no more than one that is rare, and pages go on to the oldest match. Of the titles, the newest
`NUM_TITLES` matches are found, with the first window.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import OperationalError, connection, transaction

from chat.errors import BadCursor, SearchTooSlow
from chat.search_query import SearchQuery, Unit
from chat.search_sql import SET_SEARCH, TEXTS, chats_sql, filters_of, matches_sql

WINDOW = 300
NUM_TITLES = 100
PAGE_SIZE = 20
MAX_WINDOWS = 8  # looked at for one page, where all of a window is in chats that were listed before
TIMEOUT_MS = 5_000
_CANCELED = "57014"


class Hit(NamedTuple):
    """A chat, and its best message if one was found, of which `text` is the part that matches.

    `cosine` of one that was found by its meaning; None: by its words.
    """

    conversation_id: UUID
    message_id: UUID | None
    role: str
    text: str
    written_at: datetime
    num_matches: int
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Some hits, best first; the cursor leads to the page behind."""

    hits: list[Hit]
    next_cursor: str | None


class _Match(NamedTuple):
    entry: int
    conversation: UUID
    message: UUID | None
    part: int
    written_at: datetime
    level: int


class _Rank(NamedTuple):
    """A hit's place in its window; the greatest comes first."""

    level: int
    written_at: datetime
    conversation: UUID


class _Place(NamedTuple):
    """Behind which match the window begins, and behind which hit of it the page."""

    window: tuple[datetime, int] | None = None
    rank: _Rank | None = None


def search(user: Any, query: SearchQuery, cursor: str = "") -> SearchPage:
    """A page of what a user's query finds. Raises BadCursor, SearchTooSlow."""
    place: _Place | None = _read_cursor(cursor)
    names = filters_of(query) | {"owner": user.pk, "titles": NUM_TITLES}
    if not query.units:
        return _chats(query, names, cursor) if query.has_filters else SearchPage([], None)
    hits: list[Hit] = []
    with looking_for(query.units) as can_match:
        for _ in range(MAX_WINDOWS if can_match else 0):
            assert place is not None
            hits, place = _page(query, names, place)
            if hits or place is None:
                break
        else:
            place = place if can_match else None
    return SearchPage(hits, _cursor(place) if place else None)


@contextmanager
def looking_for(units: list[Unit], timeout_ms: int = TIMEOUT_MS) -> Iterator[bool]:
    """A transaction that sees matching entries only. False: there is nothing to look for.

    Raises SearchTooSlow where a statement within takes longer."""
    wanted: dict[str, Any] = {
        "texts": [unit.text for unit in units],
        "exact": [unit.is_exact for unit in units],
        "unwanted": [unit.is_unwanted for unit in units],
        "timeout": str(timeout_ms),
    }
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(SET_SEARCH, wanted)
            yield bool(cursor.fetchone()[0])
            cursor.execute(
                "SELECT set_config('vitrine.search', '', true),"
                " set_config('statement_timeout', '0', true)"
            )
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _CANCELED:
            raise
        raise SearchTooSlow from None


def _page(
    query: SearchQuery, names: dict[str, Any], place: _Place
) -> tuple[list[Hit], _Place | None]:
    """The hits behind a place in its window, and the place to go on from."""
    window_at, window_id = place.window or (None, None)
    names = names | {"window": WINDOW, "window_at": window_at, "window_id": window_id}
    with connection.cursor() as cursor:
        cursor.execute(matches_sql(query, is_first=place.window is None), names)
        matches = [_Match(*row) for row in cursor.fetchall()]
    in_window = [match for match in matches if match.message is not None]
    groups = _best_first(matches, in_window)
    if place.rank is not None:
        groups = [group for group in groups if group[0] < place.rank]
    page, rest = groups[:PAGE_SIZE], groups[PAGE_SIZE:]
    hits = _with_texts(page)
    if rest:
        return hits, _Place(place.window, page[-1][0])
    if len(in_window) < WINDOW:
        return hits, None
    oldest = min(in_window, key=lambda match: (match.written_at, match.entry))
    return hits, _Place((oldest.written_at, oldest.entry))


_Group = tuple[_Rank, _Match, int]


def _best_first(matches: Iterable[_Match], in_window: list[_Match]) -> list[_Group]:
    """Each conversation once, at its best message, with its number of matches."""
    by_chat: dict[UUID, list[_Match]] = {}
    for match in matches:
        by_chat.setdefault(match.conversation, []).append(match)
    groups = []
    for chat, of_chat in by_chat.items():
        best = max(of_chat, key=lambda m: (m.message is not None, m.level, m.written_at, m.entry))
        level = max(match.level for match in of_chat)
        num_messages = len({match.message for match in of_chat if match.message})
        groups.append((_Rank(level, best.written_at, chat), best, num_messages))
    return sorted(groups, key=lambda group: group[0], reverse=True)


def _with_texts(groups: list[_Group]) -> list[Hit]:
    places = [(best.message, best.part) for _, best, _ in groups if best.message]
    texts: dict[UUID, tuple[str, str]] = {}
    if places:
        with connection.cursor() as cursor:
            messages, parts = zip(*places, strict=True)
            cursor.execute(TEXTS, {"messages": list(messages), "parts": list(parts)})
            texts = {message: (role, text) for message, role, text in cursor.fetchall()}
    hits = []
    for _, best, num_messages in groups:
        role, text = texts.get(best.message, ("", "")) if best.message else ("", "")
        hit = Hit(best.conversation, best.message, role, text, best.written_at, num_messages)
        hits.append(hit)
    return hits


def _chats(query: SearchQuery, names: dict[str, Any], cursor: str) -> SearchPage:
    """Chats that filters alone select, newest first."""
    rank = _read_cursor(cursor).rank
    names = names | {
        "limit": PAGE_SIZE + 1,
        "behind_at": rank and rank.written_at,
        "behind_id": rank and rank.conversation,
    }
    with connection.cursor() as db:
        db.execute(chats_sql(query, is_first=rank is None), names)
        rows = db.fetchall()
    hits = [Hit(chat, None, "", "", at, 0) for chat, at in rows[:PAGE_SIZE]]
    if len(rows) <= PAGE_SIZE:
        return SearchPage(hits, None)
    last = _Rank(0, hits[-1].written_at, hits[-1].conversation_id)
    return SearchPage(hits, _cursor(_Place(None, last)))


def _cursor(place: _Place) -> str:
    window = f"{place.window[0].isoformat()}~{place.window[1]}" if place.window else "~"
    rank = place.rank
    behind = f"{rank.level}~{rank.written_at.isoformat()}~{rank.conversation}" if rank else "~~"
    return f"{window}~{behind}"


def _read_cursor(cursor: str) -> _Place:
    if not cursor:
        return _Place()
    try:
        window_at, window_id, level, written_at, chat = cursor.split("~")
        window = (_moment(window_at), int(window_id)) if window_at else None
        rank = _Rank(int(level), _moment(written_at), UUID(chat)) if level else None
    except ValueError:
        raise BadCursor from None
    if window and not 0 <= window[1] < 2**63:
        raise BadCursor
    return _Place(window, rank)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment
