"""Decisions are kept for a while, and are their owners' alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from chat import decisions
from moderation.models import Decision, Review
from webapp.tenancy import as_system, as_user

pytestmark = pytest.mark.django_db


def decision(owner: Any, **fields: Any) -> Decision:
    values = {"stage": "input", "source": "chat", "action": "block", **fields}
    return Decision.objects.create(owner=owner, **values)


def test_charlie_sees_nobodys(alice: Any, charlie: Any) -> None:
    with as_user(alice.pk):
        row = decision(alice, text="canary")
        assert Decision.objects.get(pk=row.pk).text == "canary"
    with as_user(charlie.pk):
        assert not Decision.objects.exists()
        assert not Decision.objects.filter(pk=row.pk).update(text="gone")


def test_what_waits_for_a_person_stays(alice: Any) -> None:
    long_ago = timezone.now() - timedelta(days=settings.MODERATION_DAYS + 1)
    with as_system():
        old, waiting, new = (decision(alice, review=r) for r in ("", Review.OPEN, ""))
        Decision.objects.filter(pk__in=[old.pk, waiting.pk]).update(created_at=long_ago)
        decisions.forget_old()
        assert set(Decision.objects.values_list("pk", flat=True)) == {waiting.pk, new.pk}
