"""Chats that are found by their meaning: marked as such, and open at the message, on its branch."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.library import add_chats
from tests.browser.pages import cookies_of
from tests.browser.test_accessibility import THEMES, expect_no_faults
from tests.sites import Site, SiteMaker, email_of, wait_until
from webapp.servers.postgres import Postgres

LENTILS = "Boil the lentils for twenty minutes with a bay leaf, then stir in fried onions."
CHATS: dict[str, Any] = {
    "Dinner": [
        (None, "What shall I do tonight, when all of my friends come over?"),
        (0, LENTILS),
        (1, "And what do we drink with that?"),
        (0, "Take them to the cinema: there is a new film about whales."),
        *[(place, f"More about the cinema, part {place}.") for place in range(3, 30)],
    ]
}


@pytest.fixture(scope="module")
def cook_cookies(make_site: SiteMaker) -> Iterator[tuple[str, list[Any]]]:
    with make_site(VITRINE_CHAT_MEANING="true") as site:
        site.set_up().close()
        visitor = site.sign_up("cook")
        add_chats(site, email_of("cook"), CHATS)
        wait_until(lambda: num_waiting(site) == 0, timeout_s=60, what="all vectors")
        yield site.url, cookies_of(visitor, site.url)


def num_waiting(site: Site) -> int:
    statement = "SELECT count(*) FROM chat_messagevector WHERE vector IS NULL"
    with psycopg.connect(Postgres(site.data_dir).conninfo(user="postgres")) as db:
        row = db.execute(statement).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def kitchen(context: BrowserContext, cook_cookies: tuple[str, list[Any]]) -> Page:
    url, cookies = cook_cookies
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(url)
    page.locator("status-bar:defined").wait_for(state="attached")
    page.keyboard.press("Control+k")
    return page


def test_it_opens_at_the_message_on_another_branch(kitchen: Page) -> None:
    kitchen.keyboard.type("how to cook legumes")
    option = kitchen.get_by_role("option")
    expect(option).to_have_count(1)
    expect(option).to_contain_text("By meaning")
    expect(option.locator(".palette__snippet")).to_have_text(LENTILS)
    kitchen.keyboard.press("Enter")
    found = kitchen.locator(".message[data-found]")
    expect(found).to_contain_text("Boil the lentils")
    expect(found).to_be_in_viewport()
    expect(found).to_be_focused()
    expect(kitchen.locator(".message").last).to_contain_text("what do we drink")
    expect(kitchen.locator("message-list")).not_to_contain_text("cinema")
    kitchen.reload()
    expect(kitchen.locator(".message[data-found]")).to_be_in_viewport()


def test_what_words_find_is_not_marked_and_nonsense_finds_nothing(kitchen: Page) -> None:
    kitchen.keyboard.type("lentils")
    expect(kitchen.get_by_role("option").locator("mark")).to_have_text("lentils")
    expect(kitchen.get_by_role("option")).not_to_contain_text("By meaning")
    kitchen.keyboard.press("Control+a")
    kitchen.keyboard.type("blorf snarg wibble")
    expect(kitchen.locator(".palette__state")).to_contain_text("Nothing was found")
    expect(kitchen.get_by_role("option")).to_have_count(0)


@THEMES
def test_no_faults(kitchen: Page, theme: str) -> None:
    kitchen.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    kitchen.keyboard.type("how to cook legumes")
    expect(kitchen.get_by_role("option")).to_contain_text("By meaning")
    expect_no_faults(kitchen)
