"""Prices that an administrator sets: from the next answer on, and never for one that has ended."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import IntegrityError, transaction
from django.test import Client

from chat import budgets, pricing
from chat.bills import Bill
from chat.events import RunUsage
from chat.ids import uuid7
from chat.models import ModelPrice, Usage
from chat.prices import Price
from webapp.models import User
from webapp.tenancy import as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

PAGE = "/admin/chat/modelprice/"
MILLION = RunUsage(prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=1_000_000)


def form(model: str = "org/large", **more: str) -> dict[str, str]:
    return {"model": model, "prompt": "1", "cached": "", "completion": "2", "engine_s": "0"} | more


def entered(user: User, model: str) -> Decimal:
    """What an answer of a million tokens costs now, by what the ledger has grown."""
    with as_user(user.pk):
        rows = Usage.objects.filter(owner=user, model=model)
        before = sum(rows.values_list("cost", flat=True), Decimal(0))
        bill = Bill(model, 1, usage=MILLION)
        charge = bill.total(pricing.price_of(model))
        budgets.settle(uuid7(), owner_id=user.pk, api_key_id=None, model=model, charge=charge)
        return rows.get().cost - before


def test_a_price_of_the_console_is_in_place_of_the_environments(
    console: Client, alice: User, settings: Any
) -> None:
    settings.PRICES = {"org/large": Price(prompt=Decimal(10)), "small": Price(prompt=Decimal(5))}
    assert entered(alice, "org/large") == 10
    assert console.post(PAGE + "add/", form(cached="0.5")).status_code == 302
    assert entered(alice, "org/large") == Decimal("2.8")  # 0.6 read, 0.2 of the cache, 2 written
    assert entered(alice, "small") == 5
    with as_user(alice.pk):
        assert Usage.objects.get(model="org/large").cost == Decimal("12.8")
    row = ModelPrice.objects.get()
    zeros = dict.fromkeys(("prompt", "cached", "completion", "engine_s"), "0")
    assert console.post(f"{PAGE}org_2Flarge/change/", zeros).status_code == 302
    assert entered(alice, "org/large") == 0
    assert console.post(f"{PAGE}org_2Flarge/delete/", {"post": "yes"}).status_code == 302
    assert not ModelPrice.objects.filter(pk=row.pk).exists()
    assert entered(alice, "org/large") == 10


def test_who_changed_a_price_and_what_is_noted(console: Client, admin: User) -> None:
    console.post(PAGE + "add/", form())
    console.post(f"{PAGE}org_2Flarge/change/", form(completion="3"))
    added, changed = LogEntry.objects.order_by("action_time")
    assert (added.user, added.object_repr) == (admin, "org/large")
    assert "million tokens written" in changed.get_change_message()


@pytest.mark.parametrize(
    "wrong", [{"prompt": "-1"}, {"cached": "-0.1"}, {"completion": "NaN"}, {"engine_s": "1e99"}]
)
def test_what_is_no_price_is_refused(console: Client, wrong: dict[str, str]) -> None:
    assert console.post(PAGE + "add/", form(**wrong)).status_code == 200
    assert not ModelPrice.objects.exists()


def test_the_database_refuses_it_too() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        ModelPrice.objects.create(model="small", completion=-1)


def test_the_list_shows_which_prices_hold(console: Client, settings: Any) -> None:
    settings.PRICES = {"small": Price(prompt=Decimal("7.25")), "org/large": Price(Decimal("9.75"))}
    ModelPrice.objects.create(model="org/large", prompt=Decimal("1.50"))
    page = console.get(PAGE).content.decode()
    assert "7.25" in page
    assert ">1.5<" in page
    assert "9.75" not in page  # what holds is the row


def test_only_administrators_set_prices(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.post(PAGE + "add/", form(), follow=True).status_code == 403
    assert not ModelPrice.objects.exists()


def test_prices_of_several_models_are_one_query(django_assert_num_queries: Any) -> None:
    ModelPrice.objects.create(model="a", prompt=1)
    with django_assert_num_queries(1):
        assert pricing.prices_of(["a", "b"]).keys() == {"a"}
