"""News on the channel layer: «something changed, look again», never content.

The layer drops silently when it is full, so every reader can do without a notice: the rows and the
run log are the truth.
"""

import asyncio
import logging
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

SOON_S = 0.4
_telling: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly


def user_group(user_id: Any) -> str:
    return f"user-{user_id}"


async def conversation_changed(
    user_id: Any, conversation_id: UUID, *, except_for: str = ""
) -> None:
    """Tell every tab of a user that a conversation, or an answer in it, has changed; but for the one
    whose channel is named, which knows already."""
    notice = {"type": "conversation.changed", "id": str(conversation_id), "except_for": except_for}
    await _send(user_group(user_id), notice)


def conversation_changed_soon(user_id: Any, conversation_id: UUID, *, except_for: str = "") -> None:
    """The same in a moment, while the caller goes on: it goes through Redis and back, and where many
    answers begin at once, each notice would be in the way of a first word."""
    telling = _tell_soon(user_id, conversation_id, except_for)
    task = asyncio.create_task(telling)
    _telling.add(task)
    task.add_done_callback(_telling.discard)


async def _tell_soon(user_id: Any, conversation_id: UUID, except_for: str) -> None:
    await asyncio.sleep(SOON_S)
    await conversation_changed(user_id, conversation_id, except_for=except_for)


async def conversation_deleted(user_id: Any, conversation_id: UUID) -> None:
    await _send(user_group(user_id), {"type": "conversation.deleted", "id": str(conversation_id)})


async def library_changed(user_id: Any) -> None:
    """Folders, or more conversations than are worth telling one by one, have changed."""
    await _send(user_group(user_id), {"type": "library.changed"})


async def _send(group: str, notice: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group, notice)
    except (OSError, RedisError):
        # Redis is away. Tabs will find out by themselves; an answer must not fail for it.
        logger.warning("a notice could not be sent: Redis is not reachable")
