"""A reader's stop, for whichever process writes the answer."""

import logging
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from chat import access, run_log, runs
from chat.db import in_db
from chat.shielded import in_background

logger = logging.getLogger(__name__)


async def stop_run(user: Any, run_id: UUID, chars: int | None) -> None:
    """End an answer; its text ends after `chars` characters. Raises NotFound.

    At once where it is written here, and kept as well: a process that has just died, or lost the answer
    to another one, would take the stop along.
    """
    run = runs.get(run_id)
    if run is None or run.user_id != user.pk:
        await in_db(access.generation_for)(user, run_id)
        await in_db(run_log.request_stop)(run_id, chars)
        return
    run.stop(chars)
    if run.is_kept:
        in_background(_keep(run_id, chars))


async def _keep(run_id: UUID, chars: int | None) -> None:
    try:
        await in_db(run_log.request_stop)(run_id, chars)
    except (DatabaseError, InterfaceError):
        logger.warning("the stop of run %s is kept nowhere", run_id, exc_info=True)
