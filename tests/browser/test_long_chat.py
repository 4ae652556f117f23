"""A long chat: the page paints what is seen first, its modules add the rest, in order."""

import re
from typing import Any

import httpx2
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.library import add_chats
from tests.browser.pages import cookies_of, distance_to_end
from tests.sites import Site, email_of

TEXTS = [f"Message number {n}." for n in range(150)]
NUM_TURNS = len(TEXTS) // 2
_IN_TURNS = """
  [...document.querySelectorAll(".turn")].map((turn) => turn.querySelectorAll(".message").length)
"""


# Tests with a page run together, apart from those without: a module's fixtures would be made twice.
@pytest.fixture(scope="session")
def visitor(vitrine_server: Site) -> httpx2.Client:
    """Somebody with one long chat."""
    vitrine_server.set_up()
    visitor = vitrine_server.sign_up("Longreader")
    add_chats(vitrine_server, email_of("Longreader"), {"Long": list(TEXTS)})
    return visitor


@pytest.fixture(scope="session")
def chat(visitor: httpx2.Client) -> dict[str, Any]:
    """Its value, with its messages."""
    row = visitor.get("/api/conversations").json()["items"][0]
    whole: dict[str, Any] = visitor.get(f"/api/conversations/{row['id']}").json()
    return row | {"messages": whole["messages"]}


@pytest.fixture
def long_page(context: BrowserContext, page: Page, visitor: httpx2.Client, base_url: str) -> Page:
    context.add_cookies(cookies_of(visitor, base_url))
    return page


def shown_first(visitor: httpx2.Client, url: str) -> list[str]:
    """Texts in the page's HTML, before any module has run."""
    found = re.findall(r'<div class="message__text"[^>]*>([^<]+)<', visitor.get(url).text)
    return [text for text in found if text in TEXTS]


def texts_of(page: Page) -> list[str]:
    """Of all messages, in the order in which they stand."""
    return [text.strip() for text in page.locator(".message__parts").all_text_contents()]


def test_the_rest_is_added_in_order_and_the_end_is_seen(
    long_page: Page, chat: dict[str, Any]
) -> None:
    long_page.goto(chat["url"])
    expect(long_page.locator(".message")).to_have_count(len(TEXTS))
    assert texts_of(long_page) == TEXTS
    assert long_page.evaluate(_IN_TURNS) == [2] * NUM_TURNS
    expect(long_page.locator(".message").last).to_be_in_viewport()
    assert distance_to_end(long_page) < 2
    expect(long_page.locator("#announcer")).to_be_empty()  # all of it is old news


def test_the_page_itself_brings_the_end(visitor: httpx2.Client, chat: dict[str, Any]) -> None:
    assert shown_first(visitor, chat["url"]) == TEXTS[-12:]


def test_without_modules_all_of_it_is_read_by_a_link(
    visitor: httpx2.Client, chat: dict[str, Any]
) -> None:
    assert re.search(r'<noscript>.*href="\?all"', visitor.get(chat["url"]).text)
    whole = f"{chat['url']}?all"
    assert shown_first(visitor, whole) == TEXTS
    assert 'href="?all"' not in visitor.get(whole).text


def test_a_link_to_a_message_paints_what_is_around_it(
    long_page: Page, visitor: httpx2.Client, chat: dict[str, Any]
) -> None:
    url = f"{chat['url']}?m={chat['messages'][60]['id']}"
    assert shown_first(visitor, url) == TEXTS[58:70]
    long_page.goto(url)
    expect(long_page.locator(".message")).to_have_count(len(TEXTS))
    expect(long_page.locator("[data-found]")).to_contain_text(TEXTS[60])
    expect(long_page.locator("[data-found]")).to_be_in_viewport()
    assert texts_of(long_page) == TEXTS
