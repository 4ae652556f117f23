"""Giving what somebody has shared to somebody else, before their account ends: collections that others
may read, and assistants that all see. Chats, and what is shared with nobody, are their owner's alone.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chat import personal
from chat.errors import ChatError
from chat.personal_models import Assistant
from retrieval import sharing
from retrieval.collection_models import Collection
from retrieval.errors import RetrievalError
from webapp.models import User
from webapp.security_events import Kind, note_event
from webapp.tenancy import as_system

logger = logging.getLogger(__name__)


class CannotTake(Exception):
    """Why, in words."""


@dataclass(slots=True)
class Handed:
    """How much, and in words why the rest stays with its owner."""

    num_collections: int = 0
    num_assistants: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"collections: {self.num_collections}, assistants: {self.num_assistants}"


def shares_something(user: User) -> bool:
    """What others would miss if the account ended."""
    with as_system():  # who may read is not its owner's alone to see
        return sharing.shared_of(user).exists() or personal.shared_of(user).exists()


def hand_over(giver: User, taker: User) -> Handed:
    """Each thing in a transaction of its own. Raises CannotTake where nothing can be."""
    if giver.pk == taker.pk:
        raise CannotTake("Somebody else has to take it.")
    if not taker.is_active:
        raise CannotTake(f"{taker.email} is suspended.")
    handed = Handed()
    with as_system():  # rows of two people
        for collection in sharing.shared_of(giver):
            handed.num_collections += _attempt(
                lambda row: sharing.hand_over(row, taker), collection, handed
            )
        for assistant in personal.shared_of(giver):
            handed.num_assistants += _attempt(
                lambda row: personal.hand_over(row, taker), assistant, handed
            )
    if handed.num_collections or handed.num_assistants:
        how = f"handed over to account {taker.pk}: {handed}"
        note_event(Kind.RIGHTS, account=giver.pk, how=how)
        logger.info("user %s %s", giver.pk, how)
    return handed


def _attempt(step: Callable[[Any], None], row: Collection | Assistant, handed: Handed) -> bool:
    try:
        step(row)
    except (ChatError, RetrievalError) as error:
        handed.problems.append(f"{row._meta.verbose_name} {row.pk}: {error}")
        return False
    return True
