"""Columns of the console's lists: named in words, figures with separators, no empty signs."""

import re
from decimal import Decimal

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.test import Client

from chat.budgets import today
from chat.models import Usage
from webapp.models import Tier, User
from webapp.security_events import Kind, note_event
from webapp.tenancy import as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def titles(page: str) -> list[str]:
    head = page.split('id="result_list"')[1].split("</thead>")[0]
    words = re.findall(r'<div class="text">\s*<(?:a|span)[^>]*>\s*([^<]+?)\s*<', head)
    return [word for word in words if word]


def test_the_ledger_names_its_columns_and_separates_thousands(console: Client, alice: User) -> None:
    with as_user(alice.pk):
        row = Usage.objects.create(
            owner=alice,
            day=today(),
            model="small",
            num_requests=3,
            prompt_tokens=1_234_567,
            cost=Decimal("0.0312"),
        )
    page = console.get("/admin/chat/usage/").content.decode()
    assert titles(page) == [
        "Day",
        "Owner",
        "Model",
        "API key",
        "Answers",
        "Tokens read",
        "From the cache",
        "Tokens written",
        "Cost, EUR",
    ]
    assert "1,234,567" in page
    assert ">0.0312<" in page
    assert 'class="field-num_read' in page
    one = console.get(f"/admin/chat/usage/{row.pk}/change/").content.decode()
    assert "1,234,567" in one
    assert "Num requests" not in one


def test_tiers_are_called_the_same_in_the_list_and_on_their_page(console: Client) -> None:
    Tier.objects.filter(slug="free").update(tokens_per_day=1_000_000)
    listed = console.get("/admin/webapp/tier/").content.decode()
    page = console.get("/admin/webapp/tier/free/change/").content.decode()
    assert "1,000,000" in listed
    for title in titles(listed)[1:]:
        assert title in page, title
    assert "Concurrent runs" not in listed


def test_the_log_says_who_did_what_to_what(console: Client, admin: User, alice: User) -> None:
    LogEntry.objects.log_actions(admin.pk, [alice], CHANGE, change_message="Suspended.")
    page = console.get("/admin/admin/logentry/").content.decode()
    assert titles(page) == ["Time", "User", "Action", "Kind", "What", "Change"]
    assert "People and keys" not in page.split('id="result_list"')[1].split("</table>")[0]


def test_events_show_no_hash_in_their_list(console: Client) -> None:
    note_event(Kind.SIGN_IN_FAILED, login="somebody@example.org")
    page = console.get("/admin/webapp/securityevent/").content.decode()
    assert "Login" not in titles(page)
    (link,) = re.findall(r'href="(/admin/webapp/securityevent/\d+/change/)', page)[:1]
    assert "Fingerprint of the name that was typed" in console.get(link).content.decode()


@pytest.mark.parametrize("slug", ["free", "pro"])
def test_a_tier_of_no_requests_is_refused(console: Client, slug: str) -> None:
    form = {"name": "x", "model_names": "*", "concurrent_runs": "1", "weight": "1"}
    form |= {"api_priority": "api", "requests_per_minute": "0"}
    page = console.post(f"/admin/webapp/tier/{slug}/change/", form)
    assert "With 0 nobody could ask." in page.content.decode()
    assert Tier.objects.filter(slug=slug).exclude(requests_per_minute=0).exists()
