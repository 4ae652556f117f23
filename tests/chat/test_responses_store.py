"""What is kept of responses, as rows."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from chat import responses_store
from chat.ids import uuid7
from chat.models import StoredResponse
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = pytest.mark.django_db(transaction=True)


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text, "id": f"msg_{text}"}


def keep(user: User, text: str, previous: StoredResponse | None = None) -> StoredResponse:
    id_ = uuid7()
    return StoredResponse.objects.create(
        pk=id_,
        owner=user,
        thread=previous.thread if previous else id_,
        previous=previous.pk if previous else None,
        input=[said(text)],
        body={"output": [said(f"re {text}")], "instructions": "long"},
    )


def age(row: StoredResponse, age: timedelta) -> None:
    StoredResponse.objects.filter(pk=row.pk).update(created_at=timezone.now() - age)


def ids() -> set[UUID]:
    return set(StoredResponse.objects.values_list("pk", flat=True))


def test_a_thread_lives_as_long_as_it_is_gone_on_with(alice: User) -> None:
    old, day = responses_store.KEEP + timedelta(days=1), timedelta(days=1)
    with as_system():
        first = keep(alice, "one")
        second = keep(alice, "two", first)
        done = keep(alice, "other")
        age(first, old)
        age(done, old)
        age(second, day)
        responses_store.forget_old()
        assert ids() == {first.pk, second.pk}
        age(second, old)
        responses_store.forget_old(StoredResponse.objects.filter(owner=alice))
        assert not ids()
