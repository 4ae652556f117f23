"""A session ends in the middle of a sentence: its owner signs in, and the page goes on where it was."""

from collections.abc import Iterator
from itertools import count

import httpx2
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.sites import PASSWORD, Site, email_of, post_form

QUESTION = "What is 17 * 23?"
_numbers = count(1)


@pytest.fixture
def name() -> str:
    return f"nora{next(_numbers)}"


@pytest.fixture
def visitor(vitrine_server: Site, context: BrowserContext, name: str) -> Iterator[httpx2.Client]:
    """The same session as the browser's, to end it from elsewhere."""
    vitrine_server.set_up()
    visitor = vitrine_server.sign_up(name)
    context.add_cookies(cookies_of(visitor, vitrine_server.url))
    yield visitor
    visitor.close()


def sign_in(page: Page, name: str) -> None:
    """In the window that the page opens."""
    with page.expect_popup() as opened:
        page.locator("status-bar").get_by_role("button", name="Sign in").click()
    window = opened.value
    window.fill('input[name="login"]', email_of(name))
    window.fill('input[name="password"]', PASSWORD)
    with window.expect_event("close"):
        window.press('input[name="password"]', "Enter")


def test_what_was_sent_in_vain_is_answered_after_all(
    visitor: httpx2.Client, page: Page, name: str
) -> None:
    page.goto("/")
    ask(page, "My name is Ada. What is my name?")
    expect(last_answer(page)).to_contain_text("Ada")
    address = page.url
    assert post_form(visitor, "/accounts/logout/", {}).status_code == 302
    ask(page, QUESTION)
    expect(page.locator("status-bar")).to_contain_text(
        "You are signed out. What you wrote is kept."
    )
    said = page.locator("status-bar").get_by_role("status")
    expect(said).to_have_text("You are signed out. What you wrote is kept.")
    sign_in(page, name)
    expect(page.locator("status-bar .status")).to_have_count(0)
    expect(last_answer(page)).to_contain_text("391")
    assert page.url == address
    # What is not the socket's has the new session's token, too.
    with page.expect_response(lambda response: "/feedback" in response.url) as told:
        last_answer(page).hover()
        last_answer(page).get_by_role("button", name="Good answer").click()
    assert told.value.ok


def test_for_somebody_else_the_page_begins_anew(
    visitor: httpx2.Client, vitrine_server: Site, page: Page, name: str
) -> None:
    other = f"{name}else"
    vitrine_server.sign_up(other).close()
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    assert post_form(visitor, "/accounts/logout/", {}).status_code == 302
    ask(page, QUESTION)
    with page.expect_event("load"):
        sign_in(page, other)
    expect(page.locator(".person")).to_contain_text(other)
    expect(page.locator(INPUT)).to_have_value("")
    expect(page.locator(".message")).to_have_count(0)
