"""A temporary chat on the page: unmistakable, nowhere stored, kept by one click."""

import re
from contextlib import closing
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.browser.scripted import ScriptedChat
from tests.sites import Site, wait_until

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


def test_what_is_deleted_in_it_comes_back_by_undo(chat: ScriptedChat, page: Page) -> None:
    page.locator("[data-temporary]").click()
    ask(page, "Hello")
    chat.accept_temporary("Hello to you")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    last_answer(page).hover()
    last_answer(page).locator("[data-act=more]").click()
    page.locator("[data-menu-act=delete]").click()
    expect(page.locator(".message--assistant")).to_have_count(0)
    page.locator(".toast__action", has_text="Undo").click()
    expect(last_answer(page)).to_contain_text("Hello to you")


def keep(chat: ScriptedChat) -> tuple[Route, dict[str, Any]]:
    """Press "Keep it": what asks for it, and what the server would say."""
    page, held = chat.page, []
    page.locator("[data-temporary]").click()
    ask(page, "Hello")
    chat.accept_temporary("Hello to you")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    page.fill(INPUT, "half a thought")
    page.route("**/api/temporary/keep", lambda route: held.append(route))
    with page.expect_request("**/api/temporary/keep"):
        page.get_by_role("button", name="Keep it").click()
    wait_until(lambda: held or page.wait_for_timeout(20), what="the request")
    [route] = held
    question = chat.add("user", "Hello", None, "u1")
    chat.add("assistant", "Hello to you", question["id"], "a1")
    return route, {"conversation": chat.conversation, "messages": chat.messages}


def test_what_is_being_written_is_kept_with_it(chat: ScriptedChat, page: Page) -> None:
    route, kept = keep(chat)
    page.locator(INPUT).click(force=True)
    page.keyboard.press("Enter")
    route.fulfill(json=kept)
    page.wait_for_url("**/c/*")
    expect(page.locator(".message--user")).to_have_count(1)
    expect(page.locator(INPUT)).to_have_value("half a thought")
    assert len(chat.heard_of("temporary.send")) == 1
    assert chat.heard_of("message.send") == []
    page.keyboard.press("Control+Shift+'")
    expect(page.locator(INPUT)).to_have_value("")
    page.go_back()
    expect(page.locator(INPUT)).to_have_value("half a thought")


def test_who_has_gone_on_meanwhile_is_not_taken_back(chat: ScriptedChat, page: Page) -> None:
    route, kept = keep(chat)
    page.locator(".sidebar__new [data-new-chat]").click()
    page.locator("#confirm [data-confirm]").click()
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value("")
    page.fill(INPUT, "something else")
    route.fulfill(json=kept)
    expect(page.locator(".toast")).to_contain_text("kept")
    expect(page.locator(f"[data-conversation='{kept['conversation']['id']}']")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.locator(INPUT)).to_have_value("something else")


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


def test_leaving_a_text_that_is_not_sent_asks_too(chat: ScriptedChat, page: Page) -> None:
    unloads: list[str] = []
    page.on("dialog", lambda dialog: (unloads.append(dialog.type), dialog.dismiss()))
    page.locator("[data-temporary]").click()
    page.fill(INPUT, "half a thought")
    page.evaluate("location.reload()")
    page.locator("[data-temporary]").click()
    expect(page.locator("#confirm")).to_contain_text("gone for good")
    expect(page.locator("#confirm")).not_to_contain_text("keep it")
    page.locator("#confirm button", has_text="Cancel").click()
    expect(page.locator(INPUT)).to_have_value("half a thought")
    assert unloads == ["beforeunload"]
    page.fill(INPUT, "")
    page.locator("[data-temporary]").click()
    expect(page.locator(".temporary")).to_be_hidden()
