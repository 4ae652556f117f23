"""Which classifiers could not be asked lately, of everybody's decisions."""

from datetime import timedelta

import pytest
from django.utils import timezone

from moderation.away import away_since
from moderation.models import Decision
from webapp.models import User
from webapp.tenancy import as_system

pytestmark = pytest.mark.django_db


def decided(owner: User, minutes_ago: int, **failed: str) -> None:
    rows = [{"classifier": name, "reason": reason} for name, reason in failed.items()]
    decision = Decision.objects.create(
        owner=owner, stage="input", source="chat", action="allow", failed=rows
    )
    at = timezone.now() - timedelta(minutes=minutes_ago)
    Decision.objects.filter(pk=decision.pk).update(created_at=at)


def test_each_is_counted_with_what_it_said_last(alice: User, bob: User) -> None:
    with as_system():
        decided(alice, 1)
        decided(alice, 30, far="too slow")
        decided(bob, 10, far="it has died", near="no memory")
        decided(bob, 90, far="long ago", other="long ago")
        found = away_since(timezone.now() - timedelta(hours=1))
    told = [(one.classifier, one.num_texts, one.reason) for one in found]
    assert told == [("far", 2, "it has died"), ("near", 1, "no memory")]


def test_where_all_have_answered_there_is_nothing_to_tell(alice: User) -> None:
    with as_system():
        decided(alice, 1)
        assert away_since(timezone.now() - timedelta(hours=1)) == []
