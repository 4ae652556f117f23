"""A user's word about a call of a tool, for the process that writes the answer."""

from typing import Any
from uuid import UUID

from chat import access, run_log, runs
from chat.db import in_db


async def decide_call(user: Any, run_id: UUID, call_id: str, allow: bool) -> None:
    """Kept first, so that an answer which another process takes up knows it. Raises NotFound."""
    run = runs.get(run_id)
    is_own = run is not None and run.user_id == user.pk
    word: bool | None = allow
    if run is None or not is_own or run.is_kept:
        await in_db(access.generation_for)(user, run_id)
        word = await in_db(run_log.decide)(run_id, call_id, allow)
    if run is not None and is_own and word is not None:
        run.control.decide(call_id, word)
