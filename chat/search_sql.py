"""The statements of search.py. Only our own words are put together here; values are parameters.

Row-level security shows a transaction the entries that match `vitrine.search` and no others
(migration `search`); the owner is named again, so that the index by time can be used as well.
"""

from typing import Any

from chat.search_query import SearchQuery

SET_SEARCH = """
    WITH units AS (
        SELECT CASE WHEN unwanted THEN '!' ELSE '' END || '(' || found || ')' AS unit
        FROM unnest(%(texts)s::text[], %(exact)s::bool[], %(unwanted)s::bool[])
            AS given (body, exact, unwanted), chat_search_unit(body, exact) AS found
        WHERE found IS NOT NULL
    )
    SELECT set_config('vitrine.search', coalesce(string_agg(unit, ' & '), ''), true),
        set_config('statement_timeout', %(timeout)s, true)
    FROM units
"""

TEXTS = """
    SELECT m.id, m.role, substr(m.text, 1 + part * 16000, 16200)
    FROM unnest(%(messages)s::uuid[], %(parts)s::int[]) AS found (id, part)
    JOIN chat_message m ON m.id = found.id
"""

_RANK = "ts_rank_cd(terms, current_setting('vitrine.search')::tsquery, 1)"
_LEVEL = f"round(log(greatest({_RANK}, 1e-9)::numeric) * 3)::int"  # a third of a tenfold is alike

_MATCHES = """
    SELECT id, conversation_id, message_id, part, created_at, {level} FROM (
        SELECT e.* FROM chat_searchentry e
        WHERE e.owner_id = %(owner)s AND {which} {filters}
        ORDER BY e.created_at DESC, e.id DESC
        LIMIT %({limit})s
    ) AS found
"""
_BEHIND_WINDOW = """
    AND (e.created_at, e.id) < (%(window_at)s, %(window_id)s)
    AND NOT EXISTS (
        SELECT FROM chat_searchentry newer
        WHERE newer.conversation_id = e.conversation_id AND newer.message_id IS NOT NULL
            AND (newer.created_at, newer.id) >= (%(window_at)s, %(window_id)s)
    )
"""
# Chats that words find are left out: in this transaction only the entries that match are seen. The chats
# themselves are asked, because one in the bin has its messages and their vectors still.
_NEAR = """
    WITH near AS MATERIALIZED (
        SELECT v.conversation_id, v.message_id, v.start, v."end",
            1 - (v.vector <=> %(vector)s::halfvec) AS cosine
        FROM chat_messagevector v
        WHERE v.model_id = %(model)s AND v.owner_id = %(owner)s {filters}
    ), best AS (
        SELECT DISTINCT ON (conversation_id) * FROM near WHERE cosine >= %(min_cosine)s
        ORDER BY conversation_id, cosine DESC, message_id
    ), counted AS (
        SELECT conversation_id, count(DISTINCT message_id) AS num_messages
        FROM near WHERE cosine >= %(min_cosine)s GROUP BY conversation_id
    )
    SELECT c.id, m.id, m.role, substr(m.text, best.start + 1, best."end" - best.start), m.created_at,
        counted.num_messages, best.cosine
    FROM best JOIN counted USING (conversation_id)
    JOIN chat_message m ON m.id = best.message_id AND m.deleted_at IS NULL
    JOIN chat_conversation c ON c.id = best.conversation_id AND {own}
    WHERE NOT EXISTS (
        SELECT FROM chat_searchentry e WHERE e.conversation_id = best.conversation_id {entry_filters}
    )
    ORDER BY best.cosine DESC, c.id
    LIMIT %(limit)s
"""
_OWN = "c.owner_id = %(owner)s AND c.deleted_at IS NULL"
_CHATS = """
    SELECT c.id, c.updated_at FROM chat_conversation c
    WHERE {own} {filters}
    ORDER BY c.updated_at DESC, c.id DESC
    LIMIT %(limit)s
"""
_IN_CHATS = (
    " AND {row}.conversation_id IN (SELECT c.id FROM chat_conversation c WHERE {own} {filters})"
)
_BEHIND_CHAT = " AND (c.updated_at, c.id) < (%(behind_at)s, %(behind_id)s)"


def matches_sql(query: SearchQuery, *, is_first: bool) -> str:
    """Matches of a window, and of titles with the first one. Needs `filters_of` and the window."""
    filters = _moments(query, "e.created_at")
    if chats := _of_chats(query):
        # Only where it is needed: joined with the chats, the planner misjudges how many match.
        filters += _IN_CHATS.format(row="e", own=_OWN, filters=chats)
    behind = "" if is_first else _BEHIND_WINDOW
    names = {"level": _LEVEL, "filters": filters + behind}
    messages = _MATCHES.format(**names, which="e.message_id IS NOT NULL", limit="window")
    if not is_first:
        return messages
    titles = _MATCHES.format(**names, which="e.message_id IS NULL", limit="titles")
    return f"({messages}) UNION ALL ({titles})"


def near_sql(query: SearchQuery) -> str:
    """What means about the same, in chats in which words have found nothing. Needs `filters_of`."""
    filters = _moments(query, "v.created_at")
    if chats := _of_chats(query):
        filters += _IN_CHATS.format(row="v", own=_OWN, filters=chats)
    return _NEAR.format(filters=filters, entry_filters=_moments(query, "e.created_at"), own=_OWN)


def chats_sql(query: SearchQuery, *, is_first: bool) -> str:
    filters = _of_chats(query) + _moments(query, "c.updated_at")
    return _CHATS.format(own=_OWN, filters=filters + ("" if is_first else _BEHIND_CHAT))


def filters_of(query: SearchQuery) -> dict[str, Any]:
    """The parameters that the filters of a query need."""
    return {
        "tags": [tag.lower() for tag in query.tags],
        "folders": [folder.lower() for folder in query.folders],
        "before": query.before,
        "after": query.after,
    }


def _of_chats(query: SearchQuery) -> str:
    conditions = []
    if query.tags:
        conditions.append("c.tags::text[] @> %(tags)s::text[]")
    if query.folders:
        conditions.append(
            "c.folder_id IN (SELECT f.id FROM chat_folder f"
            " WHERE f.owner_id = %(owner)s AND lower(f.name) = ANY(%(folders)s))"
        )
    if query.pinned is not None:
        conditions.append(f"(c.pinned_at IS NOT NULL) = {query.pinned}")
    if query.archived is not None:
        conditions.append(f"(c.archived_at IS NOT NULL) = {query.archived}")
    return "".join(f" AND {condition}" for condition in conditions)


def _moments(query: SearchQuery, moment: str) -> str:
    before = f" AND {moment} < %(before)s" if query.before else ""
    return before + (f" AND {moment} >= %(after)s" if query.after else "")
