"""Which language a page speaks."""

import json
import re
from datetime import UTC, datetime

import pytest
from django.contrib.humanize.templatetags.humanize import intcomma
from django.test import Client
from django.utils import translation

from tests.conftest import PASSWORD
from webapp.models import User
from webapp.templatetags.local_times import local_day, local_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]
LOGIN = "/accounts/login/"


def page(client: Client, path: str = LOGIN, **headers: str) -> str:
    return client.get(path, headers=headers).content.decode()


def language_of(html: str) -> tuple[str, str]:
    found = re.search(r'<html lang="(\w+)" dir="(\w+)">', html)
    assert found
    return found[1], found[2]


@pytest.mark.parametrize(
    ("wish", "language"),
    [
        ("", ("en", "ltr")),
        ("en-GB,de;q=0.5", ("en", "ltr")),
        ("de-AT,en;q=0.5", ("de", "ltr")),
        ("fr,ar;q=0.8,de;q=0.2", ("ar", "rtl")),
        ("fr", ("en", "ltr")),
        ("x" * 5000, ("en", "ltr")),
        ("de;q=nan, */*, ,;;", ("en", "ltr")),
    ],
)
def test_a_page_speaks_what_the_browser_asks_for(
    client: Client, wish: str, language: tuple[str, str]
) -> None:
    html = page(client, **{"Accept-Language": wish})
    assert language_of(html) == language


def test_the_texts_are_in_that_language_and_english_has_no_catalog(client: Client) -> None:
    html = page(client, **{"Accept-Language": "de"})
    assert "<h1>Anmelden</h1>" in html
    catalog = re.search(r'<script id="words" type="application/json">(.*?)</script>', html)
    assert catalog
    words = json.loads(catalog[1])
    assert words["Yesterday"] == "Gestern"
    assert words["%(n)s token"] == ["%(n)s Token", "%(n)s Tokens"]
    assert 'id="words"' not in page(client)


def test_what_is_asked_for_is_told_to_caches(client: Client) -> None:
    response = client.get(LOGIN, headers={"Accept-Language": "ar"})
    assert response["Content-Language"] == "ar"
    assert "Accept-Language" in response["Vary"]


def test_a_users_choice_counts_more_and_goes_with_them(client: Client, alice: User) -> None:
    client.force_login(alice)
    path = "/accounts/password/change/"
    assert language_of(page(client, path)) == ("en", "ltr")
    assert client.post("/settings/language", {"language": "ar"}).status_code == 302
    alice.refresh_from_db()
    assert alice.language == "ar"
    assert language_of(page(client, path, **{"Accept-Language": "de"})) == ("ar", "rtl")
    other_browser = Client()
    other_browser.force_login(alice)
    assert language_of(page(other_browser, path)) == ("ar", "rtl")
    client.post("/settings/language", {"language": ""})
    assert language_of(page(client, path, **{"Accept-Language": "de"})) == ("de", "ltr")


def test_somebody_without_an_account_chooses_for_this_browser(client: Client) -> None:
    client.post("/settings/language", {"language": "de"})
    assert language_of(page(client)) == ("de", "ltr")


@pytest.mark.parametrize("wish", ["xx", "../../etc", "de\x00", "d" * 10_000])
def test_no_other_language_is_taken(client: Client, alice: User, wish: str) -> None:
    client.force_login(alice)
    assert client.post("/settings/language", {"language": wish}).status_code == 302
    alice.refresh_from_db()
    assert alice.language == ""
    assert client.get("/settings/language").status_code == 405


def test_errors_speak_it_too_and_the_openai_api_speaks_english(client: Client) -> None:
    wish = {"Accept-Language": "de"}
    assert "Hier ist nichts" in page(client, "/accounts/nothing", **wish)
    assert "language" not in client.get("/v1/nothing", headers=wish).headers.get("Vary", "").lower()


def test_what_the_api_refuses_is_said_in_it(client: Client, alice: User) -> None:
    client.force_login(alice)
    path = "/api/conversations/none"
    said = {
        wish: client.get(path, headers={"Accept-Language": wish}).json()["error"]
        for wish in ("en", "de", "ar")
    }
    assert said["en"]["message"] == "There is no such conversation."
    assert said["de"]["message"] == "Nicht gefunden: Chat."
    assert "المحادثة" in said["ar"]["message"]
    assert {error["code"] for error in said.values()} == {"not_found"}


def test_choices_of_a_form_speak_it(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    html = page(client, "/settings/keys/new", **{"Accept-Language": "de"})
    assert "nach 90 Tagen" in html
    assert "nie" in html
    assert "after 90 days" not in html


def test_so_does_what_is_said_of_too_many_tries(client: Client, alice: User) -> None:
    form = {"login": alice.email, "password": "wrong"}
    for _ in range(11):
        response = client.post(LOGIN, form, headers={"Accept-Language": "de"})
    assert response.status_code == 429
    assert re.search(r"Bitte versuche es in \d+ Sekunden wieder\.", response.content.decode())


@pytest.mark.parametrize(("language", "number"), [("de", "1.234.567"), ("ar", "1.234.567")])
def test_large_numbers_are_grouped_in_every_language(language: str, number: str) -> None:
    with translation.override(language):
        assert intcomma(1_234_567) == number


def test_times_say_their_zone_and_let_the_browser_say_its_own() -> None:
    at = datetime(2026, 3, 5, 23, 30, tzinfo=UTC)
    with translation.override("de"):
        time = '<time datetime="2026-03-05T23:30:00+00:00" data-shown="{}">{}</time>'
        assert local_time(at) == time.format("time", "5. März 2026 23:30 UTC")
        assert local_day(at) == time.format("day", "5. März 2026")
