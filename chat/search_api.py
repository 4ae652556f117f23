"""REST of the search, GET /api/search."""

from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from ninja import Router

from chat import access, search, search_by_meaning, values
from chat.api_errors import ApiError
from chat.db import in_db
from chat.rights import rights_of
from chat.search_query import MAX_QUERY_CHARS, SearchQuery, parse
from chat.snippets import Highlighter
from chat.storable import is_storable
from inference import Caller

router = Router()


@router.get("")
async def search_chats(
    request: HttpRequest, q: str = "", cursor: str = "", timezone: str = "UTC"
) -> dict[str, Any]:
    """Chats whose messages or title hold all the words of `q`, best first, 20 a page.

    A word finds whatever begins with it, a "phrase" exactly itself; -word is left out. Filters:
    tag:name folder:name pinned:yes archived:no before:2026-03 after:2026-03-31, days as in `timezone`.
    Each item names its best message, with a snippet in pieces: [text, whether it was found].
    `problems` tells what of the query was not understood.

    Behind the last chat that words find come up to 20 that mean about the same, where the query has
    neither a phrase nor a -word: `cosine` says how near (null: found by words).
    """
    if len(q) > MAX_QUERY_CHARS or not is_storable(q):
        raise ApiError(
            400,
            "invalid_value",
            f"q: at most {MAX_QUERY_CHARS} characters that can be stored.",
            "q",
        )
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        words = "timezone: there is none of that name."
        raise ApiError(400, "invalid_value", words, "timezone") from None
    query = parse(q, zone)
    rights = rights_of(request)
    page = await in_db(search.search)(rights.user, query, cursor)
    hits = page.hits
    if page.next_cursor is None:
        caller = Caller(str(rights.user.pk), rights.user.tier.weight, rights.priority)
        hits = hits + await search_by_meaning.search(rights.user, query, caller)
    items = await in_db(_items)(rights.user, hits, query)
    return {"items": items, "next": page.next_cursor, "problems": query.problems}


def _items(user: Any, hits: list[search.Hit], query: SearchQuery) -> list[values.Value]:
    highlighter = Highlighter(query.units)
    ids = [hit.conversation_id for hit in hits]
    rows = access.conversations_of(user).filter(pk__in=ids)
    summaries = {value["id"]: value for value in values.conversation_summaries(rows)}
    return [
        _item(hit, summaries[str(hit.conversation_id)], highlighter)
        for hit in hits
        if str(hit.conversation_id) in summaries
    ]


def _item(hit: search.Hit, conversation: values.Value, highlighter: Highlighter) -> values.Value:
    snippet = highlighter.snippet(hit.text) if hit.message_id else []
    message = str(hit.message_id) if hit.message_id else None
    title = highlighter.pieces(conversation["title"])
    return {
        "conversation": conversation,
        "message": message,
        "url": conversation["url"] + (f"?m={message}" if message else ""),
        "role": hit.role or None,
        "title": [[piece.text, piece.is_hit] for piece in title],
        "snippet": [[piece.text, piece.is_hit] for piece in snippet],
        "written_at": hit.written_at.isoformat(),
        "num_matches": hit.num_matches,
        "cosine": None if hit.cosine is None else round(hit.cosine, 4),
    }
