"""What the directory does is noted twice: for administrators in the console, and in the log by ids."""

import logging

from webapp.models import ScimChange

logger = logging.getLogger(__name__)

Action = ScimChange.Action
Kind = ScimChange.Kind


def note_change(action: Action, kind: Kind, pk: int, name: str, change: str = "") -> None:
    """In the transaction of the change itself: neither is there without the other."""
    ScimChange.objects.create(
        action=action, kind=kind, object_id=pk, name=name[:254], change=change[:10_000]
    )
    logger.info("the directory: %s %s %d", kind, action, pk)
