"""The console's forms and empty pages: what they offer, and what they tell."""

import re

import pytest
from django.test import Client

from moderation.categories import CATEGORIES
from webapp.models import SignupRule

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def page_of(console: Client, path: str) -> str:
    return console.get(f"/admin/{path}", follow=True).content.decode()


@pytest.mark.parametrize("count", [1, 2])
def test_links_of_new_invitations_are_in_fields_to_copy(console: Client, count: int) -> None:
    addresses = "\n".join(f"new{number}@example.org" for number in range(count))
    form = {"email": addresses, "tier": "free", "days": "3"}
    response = console.post("/admin/webapp/invitation/add/", form)
    page = response.content.decode()
    links = re.findall(r'readonly value="(http://[^"]+/accounts/invitation/[\w-]+)"', page)
    assert len(links) == count
    assert page.count("data-copies=") == count
    assert "no-store" in response["Cache-Control"]


def test_how_long_an_invitation_is_valid_looks_like_a_field(console: Client) -> None:
    (tag,) = re.findall(r'<input[^>]*name="days"[^>]*>', page_of(console, "webapp/invitation/add/"))
    assert "border" in tag


def test_a_list_without_rows_says_so_in_its_own_words(console: Client) -> None:
    page = page_of(console, "chat/usage/")
    assert "Nobody has asked anything." in page
    assert "Show all</a>" not in page
    page = page_of(console, "chat/usage/?q=nothing")
    assert "Nothing here fits what you look for." in page
    assert "Show all</a>" in page
    assert "Add the first" in page_of(console, "webapp/invitation/")
    for path in ("webapp/scimchange", "mfa/authenticator", "moderation/decision"):
        assert "There is nothing here yet." not in page_of(console, f"{path}/"), path


def test_of_a_setting_that_is_one_row_no_other_is_added(console: Client) -> None:
    for path in ("webapp/signuprule", "webapp/secondsteprule", "chat/announcement"):
        page = page_of(console, f"{path}/")
        assert "_addanother" not in page
        assert "addlink" not in page
    SignupRule.objects.create(mode="open")
    assert "_addanother" not in page_of(console, "webapp/signuprule/")


def test_domains_are_asked_for_where_they_count(console: Client) -> None:
    page = page_of(console, "webapp/signuprule/")
    assert 'x-show="mode == &#x27;domain&#x27;"' in page or "x-show=\"mode == 'domain'\"" in page


def test_a_price_of_no_model_is_kept_with_a_warning(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.price_admin.model_states", list)
    form = {"model": "tomorrows", "prompt": "1", "completion": "2", "engine_s": "0"}
    page = console.post("/admin/chat/modelprice/add/", form, follow=True).content.decode()
    assert "No model is called tomorrows at present" in page
    assert "tomorrows" in page_of(console, "chat/modelprice/")


def test_a_policy_has_the_words_that_it_may_say_beside_it(console: Client) -> None:
    page = page_of(console, "moderation/moderationpolicy/add/")
    for name in (*CATEGORIES, "redact takes it out"):
        assert name in page
