"""Which model takes over from the others, and whose turn it is to give passages its vectors.

Web processes may be configured with different models while a site is being changed: the one that was
started last is right, or each would undo what the other does. Of those that agree, one works at a time.
In the system's scope.
"""

from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q
from django.utils import timezone

from retrieval.db import in_db
from retrieval.models import EmbeddingModel
from retrieval.renewal import renewed
from retrieval.vectors import models_in_use

LEASE_S = 30.0
RENEW_S = 10.0


def takes_over(model: EmbeddingModel, since: datetime) -> bool:
    """Whether it is the model of the web process that was started last; ours was started at `since`."""
    row = EmbeddingModel.objects.filter(pk=model.pk)
    row.filter(Q(configured_at=None) | Q(configured_at__lt=since)).update(configured_at=since)
    return models_in_use()[-1].pk == model.pk


def claim(model: EmbeddingModel, me: str) -> bool:
    """Take up the work, or go on with it. False: another process is at it."""
    now = timezone.now()
    free = EmbeddingModel.objects.filter(Q(lease_owner=me) | Q(lease_until__lte=now), pk=model.pk)
    return bool(free.update(lease_owner=me, lease_until=now + timedelta(seconds=LEASE_S)))


def release(model: EmbeddingModel, me: str) -> None:
    """Let whoever is next begin at once."""
    mine = EmbeddingModel.objects.filter(pk=model.pk, lease_owner=me)
    mine.update(lease_owner="", lease_until=timezone.now())


def kept(model: EmbeddingModel, me: str) -> AbstractAsyncContextManager[None]:
    """Within, the lease is renewed, however long something takes."""
    return renewed(in_db(partial(_renew, model, me)), RENEW_S)


def _renew(model: EmbeddingModel, me: str) -> bool:
    """False: another process has taken over."""
    mine = EmbeddingModel.objects.filter(pk=model.pk, lease_owner=me)
    return bool(mine.update(lease_until=timezone.now() + timedelta(seconds=LEASE_S)))
