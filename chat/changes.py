"""What has changed in a user's chats, told to one tab."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.db import DatabaseError, InterfaceError

from chat import access, values
from chat.db import in_db

logger = logging.getLogger(__name__)

GATHER_S = 0.05  # before a tab is told
RETRY_S = 1.0


class Changes:
    """Conversations that one tab has yet to be told of.

    What changes at the same time is looked up together, in a task of its own: the tab's next frame
    may be a stop.
    """

    def __init__(self, user: Any, tell: Callable[[values.Value], Awaitable[None]]) -> None:
        self._user = user
        self._tell = tell
        self._changed: set[str] = set()
        self._looked_up: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, conversation_id: str) -> None:
        self._changed.add(conversation_id)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tell_all(), name="tell changes")

    def discard(self, conversation_id: str) -> None:
        """It was deleted: what has been looked up of it must not bring it back."""
        self._changed.discard(conversation_id)
        self._looked_up.discard(conversation_id)

    def look_again(self) -> None:
        """Many may be gone: what has been looked up of them may be old."""
        self._changed |= self._looked_up
        self._looked_up = set()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _tell_all(self) -> None:
        while self._changed:
            await asyncio.sleep(GATHER_S)
            self._looked_up, self._changed = self._changed, set()
            try:
                summaries = await in_db(_summaries)(self._user, sorted(self._looked_up))
            except (DatabaseError, InterfaceError):
                logger.warning("changes could not be looked up, trying again", exc_info=True)
                self.look_again()
                await asyncio.sleep(RETRY_S)
                continue
            for summary in summaries:
                if summary["id"] in self._looked_up:
                    frame = {"type": "conversation.changed", "conversation": summary}
                    await self._tell(frame | {"running": summary["running"]})
            self._looked_up = set()


def _summaries(user: Any, conversation_ids: list[str]) -> list[values.Value]:
    """Of those that are not deleted."""
    rows = access.conversations_of(user).filter(pk__in=conversation_ids)
    return values.conversation_summaries(rows)
