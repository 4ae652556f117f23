"""Chats that are older than their owner's tier keeps them are deleted, as by their owner."""

from collections import Counter
from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.db import transaction

from chat import run_log
from chat.ids import lowest_uuid7
from chat.models import Conversation, Generation

PORTION = 200


def delete_old(now: datetime) -> Counter[tuple[int, int]]:
    """How many chats of which owner were deleted, and after how many days without a message.

    Archived, pinned and shared ones are no exception. What is imported counts from its import on. They
    are let go of with what is attached to them by `chat.tasks.purge_deleted`. Needs the system's scope.
    """
    tiers = get_user_model().objects.filter(tier__chat_days__isnull=False)
    gone: Counter[tuple[int, int]] = Counter()
    for days in sorted(set(filter(None, tiers.values_list("tier__chat_days", flat=True)))):
        while owners := _delete_some(days, now):
            gone.update((owner, days) for owner in owners)
    return gone


def _delete_some(days: int, now: datetime) -> list[int]:
    """The owner of each that was deleted. One that is being changed is left for the next time: something
    may be said in it."""
    before = now - timedelta(days=days)
    with transaction.atomic():
        rows = Conversation.objects.filter(
            owner__tier__chat_days=days,
            deleted_at=None,
            updated_at__lt=before,
            pk__lt=lowest_uuid7(before),
        )
        locked = rows.select_for_update(no_key=True, skip_locked=True, of=("self",))
        found = dict(locked.values_list("pk", "owner_id")[:PORTION])
        Conversation.objects.filter(pk__in=found).update(deleted_at=now)
        run_log.request_stops(Generation.objects.filter(conversation__in=found))
    return list(found.values())
