"""What is written and not sent belongs to one account, and goes when the account or the chat goes."""

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.pages import INPUT, ask, cookies_of, wait_for
from tests.browser.scripted import ScriptedChat
from tests.sites import Site

AFTER_SAVING_MS = 500
SECRET = "not for everybody"
KEPT = "Object.keys(localStorage).filter((key) => key.startsWith('vitrine.draft.'))"
SignIn = Callable[[str], None]
_numbers = count(1)


@pytest.fixture
def sign_in(vitrine_server: Site, context: BrowserContext) -> SignIn:
    """Sign somebody in to this browser, in the place of whoever was; the first time they sign up.

    No session is shared with other tests, so that it may end.
    """
    vitrine_server.set_up()
    number = next(_numbers)
    cookies: dict[str, Any] = {}

    def sign_in(name: str) -> None:
        if name not in cookies:
            visitor = vitrine_server.sign_up(f"{name}{number}")
            cookies[name] = cookies_of(visitor, vitrine_server.url)
        context.clear_cookies()
        context.add_cookies(cookies[name])

    return sign_in


def open_chat(page: Page) -> None:
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")


def write(page: Page, text: str) -> None:
    page.fill(INPUT, text)
    kept = f"Object.values(localStorage).some((value) => value.includes({json.dumps(json.dumps(text))}))"
    wait_for(page, kept)


def test_a_draft_is_seen_by_its_own_account_only(sign_in: SignIn, page: Page) -> None:
    sign_in("ann")
    open_chat(page)
    write(page, SECRET)
    sign_in("ben")
    open_chat(page)
    expect(page.locator(INPUT)).to_have_value("")
    sign_in("ann")
    open_chat(page)
    expect(page.locator(INPUT)).to_have_value(SECRET)


def from_the_chat(page: Page) -> None:
    page.locator(".person").click()


def from_the_settings(page: Page) -> None:
    page.goto("/settings/")


def from_the_page_that_asks(page: Page) -> None:
    page.goto("/accounts/logout/")


@pytest.mark.parametrize("go", [from_the_chat, from_the_settings, from_the_page_that_asks])
def test_signing_out_leaves_no_draft(
    sign_in: SignIn, page: Page, go: Callable[[Page], None]
) -> None:
    sign_in("ann")
    open_chat(page)
    write(page, SECRET)
    go(page)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/accounts/login/")
    assert page.evaluate(KEPT) == []


def test_what_is_typed_before_the_scripts_are_here_stays(sign_in: SignIn, page: Page) -> None:
    sign_in("ann")
    open_chat(page)
    write(page, "Kept before.")
    script = re.compile(r"/js/chat\.")
    held: list[Route] = []
    page.route(script, lambda route: held.append(route))
    with page.expect_request(script):
        page.goto("/", wait_until="commit")
    page.fill(INPUT, "Typed early.")
    page.get_by_role("button", name="Send", exact=True).click(force=True)  # it looks disabled
    page.wait_for_timeout(AFTER_SAVING_MS)
    assert len(held) == 1  # the page is not loaded anew
    held[0].continue_()
    page.locator("status-bar:defined").wait_for(state="attached")
    expect(page.locator(INPUT)).to_have_value("Kept before.\n\nTyped early.")
    expect(page).to_have_url("/")


def test_a_tab_that_is_still_open_keeps_nothing_after_signing_out(
    sign_in: SignIn, page: Page
) -> None:
    sign_in("ann")
    open_chat(page)
    other = page.context.new_page()
    open_chat(other)
    write(other, SECRET)
    from_the_settings(page)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/accounts/login/")
    other.fill(INPUT, "more of it")
    other.wait_for_timeout(AFTER_SAVING_MS)
    other.close(run_before_unload=True)
    assert page.evaluate(KEPT) == []


def deleted_elsewhere(chat: ScriptedChat, page: Page, id: str) -> None:
    chat.say({"type": "conversation.deleted", "id": id})


def deleted_here(chat: ScriptedChat, page: Page, id: str) -> None:
    def delete(route: Route) -> None:
        if route.request.method != "PATCH":
            return route.fallback()
        [change] = route.request.post_data_json["changes"]
        deleted, back = ([id], []) if change["deleted"] else ([], [chat.conversation])
        route.fulfill(json={"conversations": back, "deleted": deleted, "refused": []})

    page.route("**/api/conversations", delete)
    page.keyboard.press("Control+Shift+Backspace")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()


@pytest.mark.parametrize("delete", [deleted_elsewhere, deleted_here])
def test_a_draft_goes_with_its_chat(
    chat: ScriptedChat, page: Page, delete: Callable[[ScriptedChat, Page, str], None]
) -> None:
    ask(page, "Hello")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    write(page, SECRET)
    assert chat.conversation is not None
    delete(chat, page, chat.conversation["id"])
    expect(page).to_have_url("/")
    expect(page.locator(INPUT)).to_have_value("")
    page.wait_for_timeout(AFTER_SAVING_MS)
    assert page.evaluate(KEPT) == []


def test_a_draft_comes_back_with_its_chat(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    page.fill(INPUT, SECRET)
    assert chat.conversation is not None
    deleted_here(chat, page, chat.conversation["id"])
    expect(page.locator(INPUT)).to_have_value("")
    assert page.evaluate(KEPT) == []
    page.get_by_role("button", name="Undo").click()
    page.locator(".chat-link a", has_text="Hello").click()
    expect(page.locator(INPUT)).to_have_value(SECRET)


def test_a_draft_goes_with_its_chat_also_when_another_is_shown(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Hello")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    write(page, SECRET)
    page.locator(".sidebar__new [data-new-chat]").click()
    write(page, "for the new chat")
    assert chat.conversation is not None
    deleted_elsewhere(chat, page, chat.conversation["id"])
    expect(page.locator(".chat-link", has_text="Hello")).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value("for the new chat")
    assert len(page.evaluate(KEPT)) == 1
