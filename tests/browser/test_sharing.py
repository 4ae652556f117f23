"""A chat is shared, opened by somebody else, continued there, and revoked."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import WATCH_POLICY
from tests.browser.pages import ask, cookies_of, last_answer
from tests.browser.test_accessibility import expect_no_faults
from tests.sites import Site

_numbers = count(1)


@pytest.fixture
def bobs_page(browser: Browser, reader: BrowserContext, vitrine_server: Site) -> Iterator[Page]:
    with (
        closing(vitrine_server.sign_up(f"Bob{next(_numbers)}")) as visitor,
        closing(browser.new_context(base_url=vitrine_server.url)) as context,
    ):
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
        page = context.new_page()
        page.add_init_script(WATCH_POLICY)
        yield page
        assert page.evaluate("window.__violations") == []


def start_chat(page: Page, text: str) -> None:
    page.goto("/")
    ask(page, text)
    page.wait_for_url("**/c/*")
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=90_000)


def test_share_open_continue_revoke(reader: BrowserContext, page: Page, bobs_page: Page) -> None:
    start_chat(page, "What is 6 * 7?")
    page.get_by_role("button", name="Share this chat").click()
    dialog = page.get_by_role("dialog", name="Share this chat")
    expect(dialog).to_contain_text("2 messages, from “What is 6 * 7?”")
    expect(dialog).to_contain_text("Not shown: anything that you write later.")
    expect(dialog.get_by_role("heading", name="Links to this chat")).to_be_hidden()
    dialog.get_by_label("Include thinking and tool results").check()
    expect(dialog).to_contain_text("what tools were given and returned")
    expect_no_faults(page)
    dialog.get_by_role("button", name="Create and copy link").dblclick()  # one link
    row = dialog.locator(".share-list > li")
    expect(row).to_contain_text("Snapshot of")
    expect(dialog.get_by_role("status")).to_contain_text("The link is copied.")
    expect_no_faults(page)
    url = row.get_by_role("link").get_attribute("href")
    assert url

    bobs_page.goto(url)
    expect(bobs_page.locator(".message--user .message__text")).to_have_text("What is 6 * 7?")
    expect(bobs_page.locator(".message--assistant .prose").last).to_contain_text("42")
    bobs_page.locator(".aside--tool summary").first.click()
    expect(bobs_page.locator(".aside--tool")).to_contain_text("Returned")
    for scheme in ("light", "dark"):
        bobs_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        expect_no_faults(bobs_page)
    bobs_page.get_by_role("button", name="Continue this chat").click()
    bobs_page.wait_for_url("**/c/*")
    expect(bobs_page.locator(".message--user")).to_have_count(1)
    ask(bobs_page, "Thank you")
    expect(last_answer(bobs_page)).to_have_attribute("data-status", "complete", timeout=90_000)

    row.get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    expect(dialog.get_by_role("status")).to_contain_text("revoked")
    response = bobs_page.goto(url)
    assert response
    assert response.status == 404


def test_a_chat_without_an_answer_offers_nothing_to_share(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    expect(page.get_by_role("button", name="Share this chat")).to_be_hidden()
