"""Passages that could be read once and may not be any more: an answer that is being written from one
ends where it is, and prompts that hold one are forgotten. Synchronous.

A document that is deleted, a collection that is no longer shared, a group that somebody has left: what
may be read is asked of the database, which knows of all of them.
"""

import logging
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import Error, connection, transaction

from chat.models import Message
from retrieval.models import Version

logger = logging.getLogger(__name__)

_SCOPE = "SELECT set_config('vitrine.scope', %s, true)"
# Owners are named for Postgres' planner: policies alone would look at everybody's messages, for each
# owner anew.
_NAMED = """
    SELECT DISTINCT (excerpt ->> 'version')::uuid
    FROM chat_conversation c JOIN chat_message m ON m.conversation_id = c.id,
        jsonb_array_elements(m.found -> 'excerpts') AS excerpt
    WHERE c.owner_id = %s AND m.found IS NOT NULL
"""
# Prompts repeat what was found for earlier questions of their chat, on whichever branch.
_FORGET = """
    WITH chats AS (
        SELECT m.conversation_id AS id, min(m.created_at) AS since
        FROM chat_conversation c JOIN chat_message m ON m.conversation_id = c.id
        WHERE c.owner_id = %s AND m.found IS NOT NULL AND EXISTS (
            SELECT FROM jsonb_array_elements(m.found -> 'excerpts') AS excerpt
            WHERE (excerpt ->> 'version')::uuid = ANY(%s))
        GROUP BY m.conversation_id
    )
    UPDATE chat_generationturn turn SET prompt_ids = '{}'
    FROM chats
        JOIN chat_generation g ON g.conversation_id = chats.id
        JOIN chat_message answer ON answer.id = g.message_id AND answer.created_at >= chats.since
    WHERE turn.generation_id = g.id AND turn.prompt_ids <> '{}'
"""


def versions_in(messages: Iterable[Message]) -> frozenset[str]:
    """Whose passages the prompt behind these messages shows, as ids of versions."""
    founds = [message.found for message in messages if message.found]
    return frozenset(one["version"] for found in founds for one in found["excerpts"])


def readable(versions: Iterable[str]) -> frozenset[str]:
    """Those that are there, in the scope of who reads."""
    rows = Version.objects.filter(pk__in=[UUID(version) for version in versions])
    return frozenset(map(str, rows.values_list("pk", flat=True)))


def forget_prompts() -> int:
    """Drop the token ids of prompts that hold what their reader may not read any more; how many. Nobody
    could look at them any more (second_looks.py). In the system's scope."""
    rows = Message.with_deleted.filter(found__isnull=False)
    owners = list(rows.values_list("conversation__owner", flat=True).distinct())
    num = 0
    for owner_id in owners:
        try:
            num += _forget_of(owner_id)
        except Error:
            # What one has must not keep those of all others.
            logger.exception("the prompts of user %s could not be looked through", owner_id)
    return num


def _forget_of(owner_id: Any) -> int:
    """As the owner sees it: what they may read is decided in one place, the policies of the tables. That
    is asked once for all messages, which name the same few versions."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('vitrine.scope', true)")
        before = cursor.fetchone()[0] or ""
        cursor.execute(_SCOPE, [f"user:{owner_id}"])
        cursor.execute(_NAMED, [owner_id])
        named = {version for (version,) in cursor.fetchall()}
        gone = named.difference(Version.objects.filter(pk__in=named).values_list("pk", flat=True))
        num = 0
        if gone:
            cursor.execute(_FORGET, [owner_id, list(gone)])
            num = int(cursor.rowcount)
        cursor.execute(_SCOPE, [before])
    return num
