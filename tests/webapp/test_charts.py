"""Bars by day: a scale, all series, and words for who does not see them."""

import json
from datetime import date, timedelta

import pytest
from django.test import Client

from chat.budgets import today
from chat.models import Usage
from webapp.charts import Series, bars
from webapp.models import User
from webapp.tenancy import as_user

DAYS = [date(2026, 11, 1) + timedelta(days=n) for n in range(3)]


def test_series_stand_on_each_other_beside_a_scale_that_names_its_unit() -> None:
    chart = bars(
        "Tokens by day",
        "tokens",
        DAYS,
        [Series("Read", [5, 84_003_274, 0], 300), Series("Written", [0, 0, 7], 600)],
    )
    options = json.loads(chart["options"])
    assert options["scales"]["x"]["stacked"]
    assert options["scales"]["y"]["stacked"]
    assert options["scales"]["y"]["title"] == {"display": True, "text": "tokens"} | {
        "color": options["scales"]["y"]["ticks"]["color"]
    }
    assert options["plugins"]["legend"]["display"]
    assert options["interaction"] == {"mode": "index", "intersect": False}
    assert chart["words"] == (
        "Tokens by day. Read: 84,003,279 tokens in 3 days, most on 2 Nov."
        " Written: 7 tokens in 3 days, most on 3 Nov."
    )
    assert [one["label"] for one in json.loads(chart["data"])["datasets"]] == ["Read", "Written"]


def test_one_series_needs_no_legend_and_none_has_no_highest_day() -> None:
    chart = bars("EUR by day", "EUR", DAYS, [Series("EUR", [0.0, 0.0, 0.0], 500)])
    assert not json.loads(chart["options"])["plugins"]["legend"]["display"]
    assert chart["words"] == "EUR by day. EUR: 0.0 EUR in 3 days."


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_redis")
def test_the_start_page_says_what_its_charts_show(console: Client, alice: User) -> None:
    with as_user(alice.pk):
        Usage.objects.create(
            owner=alice, day=today(), model="small", num_requests=3, prompt_tokens=4321
        )
    page = console.get("/admin/").content.decode()
    assert (
        f'aria-label="Answers by day. Answers: 3 answers in 30 days, most on {today():%-d %b}.'
        in page
    )
    assert "Read: 4,321 tokens in 30 days" in page
    assert page.count('role="img"') >= 2
