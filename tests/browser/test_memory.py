"""What is remembered across chats: its page in the settings, a message's menu, and an answer's tool."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import ask, last_answer, own_page
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, chunk, events, texts

_numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamServer]:
    with UpstreamServer(title=events(*texts("A title"))) as server:
        yield server


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    """One with a model that may call tools beside the built-in one."""
    models = f"far={server.url},vitrine-small"
    with make_site(
        VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far", VITRINE_MODERATION="off"
    ) as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def base_url(site: Site) -> str:
    return site.url


@pytest.fixture
def own(browser: Browser, site: Site, server: UpstreamServer) -> Iterator[Page]:
    server.answers = [events(*texts("Hello."))]
    with own_page(site, browser, f"rememberer{next(_numbers)}") as page:
        yield page


def add(page: Page, text: str) -> None:
    page.get_by_label("Something to remember").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator(".memory__text").first).to_have_text(text)


def memories(page: Page) -> Any:
    return page.locator("[data-list] .memory__text")


def test_the_page_is_used_by_the_keyboard_alone(own: Page) -> None:
    own.goto("/settings/memory")
    own.locator("[data-live]").wait_for()
    expect(own.get_by_role("heading", name="Nothing is remembered yet")).to_be_visible()
    expect_no_faults(own)
    add(own, "I cook without meat.")
    add(own, "I live in Porto.")
    expect(own.locator("[data-count]")).to_have_text("2")
    expect(own.get_by_role("heading", name="Nothing is remembered yet")).to_be_hidden()
    own.get_by_label("Edit I live in Porto.").focus()
    own.keyboard.press("Enter")
    expect(own.get_by_label("Memory", exact=True).first).to_be_focused()
    own.keyboard.type(" Since 2019.")
    own.keyboard.press("Escape")
    expect(own.get_by_label("Edit I live in Porto.")).to_be_focused()
    own.keyboard.press("Enter")
    expect(own.get_by_label("Memory", exact=True).first).to_be_focused()
    own.keyboard.type(" Since 2020.")
    expect_no_faults(own)
    own.keyboard.press("Enter")
    expect(memories(own)).to_have_text(["I live in Porto. Since 2020.", "I cook without meat."])
    own.get_by_label("Delete I live in Porto. Since 2020.").press("Enter")
    expect(memories(own)).to_have_text(["I cook without meat."])
    own.get_by_role("button", name="Undo").press("Enter")
    expect(memories(own)).to_have_text(["I live in Porto. Since 2020.", "I cook without meat."])
    own.reload()
    own.locator("[data-live]").wait_for()
    expect(memories(own)).to_have_text(["I live in Porto. Since 2020.", "I cook without meat."])
    expect_no_faults(own)
    own.get_by_label("Use memory in new chats").press(" ")
    own.get_by_label("Something to remember").fill("I cook without meat.")
    own.keyboard.press("Enter")
    expect(own.locator(".toast").last).to_contain_text("remembered already")
    own.locator(".memories__all > summary").press("Enter")
    own.locator(".memories__all .button--danger").press("Enter")
    expect(memories(own)).to_have_count(0)
    own.reload()
    expect(own.get_by_label("Use memory in new chats")).not_to_be_checked()
    expect(own.get_by_role("heading", name="Nothing is remembered yet")).to_be_visible()


def test_it_works_without_scripts_and_on_a_phone(own: Page, browser: Browser, site: Site) -> None:
    state = own.context.storage_state()
    with browser.new_context(
        java_script_enabled=False, storage_state=state, viewport={"width": 390, "height": 844}
    ) as context:
        page = context.new_page()
        page.goto(f"{site.url}/settings/memory")
        page.locator("#new-memory").fill("I sail.")
        page.click("[data-new] button")
        expect(memories(page)).to_have_text(["I sail."])
        page.click(".memory summary")
        page.locator(".memory textarea").fill("I sail on Sundays.")
        page.click(".memory [value=change]")
        expect(memories(page)).to_have_text(["I sail on Sundays."])
        page.locator("#uses-memories").uncheck()
        page.click("[data-switch] button")
        expect(page.locator("#uses-memories")).not_to_be_checked()
        page.click(".memory [value=forget]")
        expect(memories(page)).to_have_count(0)
        assert page.locator(".memories__none").is_visible()


def test_a_message_is_remembered_and_the_next_chat_shows_it(own: Page) -> None:
    own.goto("/")
    ask(own, "I keep bees.")
    expect(last_answer(own)).to_have_attribute("aria-busy", "false")

    def choose_remember() -> None:
        own.locator(".message--user").last.get_by_role("button", name="More").press("Enter")
        own.get_by_role("menuitem", name="Remember this").press("Enter")

    choose_remember()
    expect(own.locator(".toast").last).to_contain_text("Remembered for the chats")
    choose_remember()
    expect(own.locator(".toast").last).to_contain_text("remembered already")
    own.goto("/")
    ask(own, "x" * 501)
    expect(last_answer(own)).to_have_attribute("aria-busy", "false")
    own.wait_for_url("**/c/*")
    own.click("[data-chat-setup]")
    expect(own.locator("#chat-setup [data-memory] blockquote")).to_have_text("- I keep bees.")
    expect_no_faults(own)
    own.keyboard.press("Escape")
    choose_remember()
    expect(own.locator(".toast").last).to_contain_text("500 characters")


def test_an_answer_remembers_and_it_is_undone(own: Page, server: UpstreamServer) -> None:
    function = {"name": "remember", "arguments": json.dumps({"text": "Likes tea."})}
    call = {"index": 0, "id": "call_1", "function": function}
    server.answers = [
        events(chunk(tool_calls=[call]), chunk("tool_calls")),
        events(*texts("I will.")),
    ]
    own.goto("/")
    ask(own, "I like tea. Remember that.")
    line = own.locator(".remembered")
    expect(line).to_contain_text("Remembered: Likes tea.")
    expect(last_answer(own)).to_contain_text("I will.")
    own.reload()
    expect(line).to_contain_text("Remembered: Likes tea.")
    expect_no_faults(own)
    line.get_by_role("button", name="Undo").press("Enter")
    expect(line).to_have_text("It is forgotten.")
    own.goto("/settings/memory")
    expect(own.get_by_role("heading", name="Nothing is remembered yet")).to_be_visible()


def test_over_the_chat_it_is_the_same_page(own: Page) -> None:
    own.set_viewport_size({"width": 390, "height": 844})
    own.goto("/#/settings/memory")
    own.locator(".settings-dialog [data-live]").wait_for()
    add(own, "I cook without meat.")
    own.get_by_label("Delete I cook without meat.").press("Enter")
    own.locator(".settings-dialog").get_by_role("button", name="Undo").press("Enter")
    expect(memories(own)).to_have_text(["I cook without meat."])
    expect_no_sideways_scrolling(own)
    expect_no_faults(own)
    own.get_by_label("Edit I cook").press("Enter")
    own.keyboard.press("Escape")
    expect(own.locator(".settings-dialog")).to_be_visible()
    own.keyboard.press("Escape")
    expect(own.locator(".settings-dialog")).to_be_hidden()
