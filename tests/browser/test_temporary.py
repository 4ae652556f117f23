"""A temporary chat on the page: unmistakable, nowhere stored, kept by one click."""

import re
from contextlib import closing
from itertools import count

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.sites import Site

_numbers = count(1)
SECRET = "the wren 5d20 is my secret"
ANSWER_TIMEOUT_MS = 90_000  # the first one waits until the model is loaded


@pytest.fixture
def own_page(vitrine_server: Site, context: BrowserContext) -> Page:
    vitrine_server.set_up()
    with closing(vitrine_server.sign_up(f"temporary{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    page = context.new_page()
    page.goto(vitrine_server.url)
    page.locator("status-bar:defined").wait_for(state="attached")
    return page


def ended(page: Page) -> None:
    expect(last_answer(page)).to_have_attribute(
        "data-status", "complete", timeout=ANSWER_TIMEOUT_MS
    )


def stored(site: Site) -> int:
    dump = site.manage("dumpdata", "chat")
    assert dump.returncode == 0, dump.stderr
    return dump.stdout.count(SECRET)


def test_it_leaves_no_row_and_no_trace_in_the_browser(own_page: Page, vitrine_server: Site) -> None:
    page = own_page
    page.keyboard.press("Control+Shift+'")
    expect(page.locator(".temporary")).to_contain_text("Nothing of it is stored")
    ask(page, SECRET)
    ended(page)
    page.fill(INPUT, f"{SECRET}, half written")
    ask(page, "And who are you?")
    ended(page)
    expect(page.locator(".message--user")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.locator(".chat-link")).to_have_count(0)
    page.wait_for_timeout(500)
    assert SECRET not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    assert stored(vitrine_server) == 0
    page.close(run_before_unload=False)
    assert stored(vitrine_server) == 0


def test_its_versions_work_as_in_any_chat(own_page: Page) -> None:
    page = own_page
    page.locator("[data-temporary]").click()
    ask(page, "Hello")
    ended(page)
    page.focus(INPUT)
    page.keyboard.press("Control+Shift+E")
    expect(last_answer(page).locator("[data-version]")).to_have_text("2/2")
    ended(page)
    last_answer(page).locator("[data-act=older]").focus()
    page.keyboard.press("Alt+ArrowLeft")
    expect(last_answer(page).locator("[data-version]")).to_have_text("1/2")


def test_one_click_keeps_it(own_page: Page) -> None:
    page = own_page
    page.locator("[data-temporary]").click()
    ask(page, "Hello")
    ended(page)
    page.get_by_role("button", name="Keep it").click()
    page.wait_for_url("**/c/*")
    expect(page.locator(".temporary")).to_be_hidden()
    expect(page.locator(".chat-link")).to_have_count(1)
    page.reload()
    expect(page.locator(".message--user .message__text")).to_have_text("Hello")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")


def test_leaving_it_asks_first(own_page: Page) -> None:
    page = own_page
    page.locator("[data-temporary]").click()
    ask(page, "Hello")
    ended(page)
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator("#confirm")).to_contain_text("gone for good")
    page.locator("#confirm button", has_text="Cancel").click()
    expect(page.locator(".message--user")).to_have_count(1)
    page.locator(".sidebar__new [data-new-chat]").click()
    page.locator("#confirm [data-confirm]").click()
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator(".temporary")).to_be_hidden()
