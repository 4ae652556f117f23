"""An announcement is written in the console, read above a chat, put away, and taken back."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.pages import cookies_of
from tests.sites import Site

CONSOLE = "/admin/chat/announcement/"


@pytest.fixture
def console(browser: Browser, vitrine_server: Site) -> Iterator[Page]:
    """The administrator's page of it; what was announced is taken back at the end."""
    context = browser.new_context(base_url=vitrine_server.url)
    context.add_cookies(cookies_of(vitrine_server.set_up(), vitrine_server.url))
    page = context.new_page()
    page.goto(CONSOLE)
    yield page
    page.goto(f"{CONSOLE}1/delete/")
    page.locator("form [type=submit]").last.click()
    context.close()


def test_it_is_read_and_put_away(console: Page, reader: BrowserContext, page: Page) -> None:
    console.fill("[name=text]", "On Friday at six all models rest for an hour.")
    console.get_by_role("button", name="Save", exact=True).click()
    expect(console.get_by_text("On Friday at six").first).to_be_visible()
    page.goto("/")
    note = page.get_by_role("note", name="Announcement")
    expect(note).to_contain_text("On Friday at six all models rest")
    note.get_by_role("button", name="Dismiss").click()
    expect(note).to_have_count(0)
    expect(page.locator("#composer-input")).to_be_focused()
    page.reload()
    expect(page.locator("status-bar")).to_be_attached()
    expect(note).to_have_count(0)
