"""The console's lists while tables are large: in the order of an index, and no walk over all rows to say
what can be filtered by."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client

from chat import stopped
from chat.budgets import today
from chat.models import Usage
from moderation.models import Decision, PolicyVersion
from moderation.reviewing import overturned_of
from tests.plans import plan_of, queries
from webapp.console_filters import MAX_VALUES, distinct
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]
QUEUE = "/admin/moderation/decision/"
LEDGER = "/admin/chat/usage/"


@pytest.fixture
def rows(alice: User) -> None:
    with as_system():
        Decision.objects.bulk_create(
            Decision(owner=alice, stage="input", source="chat", action=action, review=review)
            for action, review in (("allow", ""), ("review", "open"), ("block", "overturned"))
            for _ in range(100)
        )
        Usage.objects.bulk_create(
            Usage(owner=alice, day=today() - timedelta(days=n), model=f"model-{n % 2}")
            for n in range(300)
        )
        PolicyVersion.objects.create(policy_id=uuid4(), name="House", number=1, snapshot={})


@pytest.mark.parametrize(
    ("address", "table", "index"),
    [
        (QUEUE, "moderation_decision", "decision_queue"),
        (LEDGER, "chat_usage", "usage_recent"),
        (f"{LEDGER}?model=model-1", "chat_usage", "usage_recent"),
    ],
)
def test_a_list_comes_in_the_order_of_an_index(
    console: Client, rows: None, address: str, table: str, index: str
) -> None:
    with queries() as asked:
        assert console.get(address).status_code == 200
    assert not [one for one in asked if "DISTINCT" in one and f'FROM "{table}"' in one]
    counts = [one for one in asked if "COUNT(*)" in one and f'FROM "{table}"' in one]
    assert len(counts) == 1, "of what is listed, and not of the whole table once more"
    (listing,) = [one for one in asked if f'FROM "{table}"' in one and one.endswith("LIMIT 100")]
    with as_system():
        plan = plan_of(listing)
    assert index in plan
    assert f"Seq Scan on {table}" not in plan


@pytest.mark.parametrize(
    ("address", "number"),
    [
        (f"{QUEUE}?action=review", 100),
        (f"{QUEUE}?stage=output", 0),
        (f"{QUEUE}?source=chat", 300),
        (f"{QUEUE}?policy_name=House", 0),
        (f"{LEDGER}?model=model-1", 150),
    ],
)
def test_its_filters_are_those_that_there_were(
    console: Client, rows: None, address: str, number: int
) -> None:
    page = console.get(address)
    assert page.context["cl"].result_count == number
    shown = page.content.decode()
    for one in ("model=model-0", "model=model-1") if LEDGER in address else ("action=block",):
        assert one in shown
    if QUEUE in address:
        assert "policy_name=House" in shown


def test_distinct_values_are_found_one_by_one(rows: None, alice: User) -> None:
    with as_system():
        ledger = Usage.objects.all()
        with queries() as asked:
            assert distinct(ledger, "model") == ["model-0", "model-1"]
        assert all("usage_of_model" in plan_of(one) for one in asked)
        for number in range(MAX_VALUES + 5):
            Usage.objects.create(owner=alice, day=today(), model=f"more-{number:03}")
        assert len(distinct(ledger, "model")) == MAX_VALUES


def test_nor_are_all_of_somebodys_decisions_looked_through(rows: None, alice: User) -> None:
    with as_user(alice.pk):
        with queries() as asked:
            assert len(stopped.decisions_of(alice)) == 100
            overturned_of(alice.pk, ["x"])
        stopping, overturned = asked
        assert "decision_stopped" in plan_of(stopping)
        assert "decision_overturned" in plan_of(overturned)
