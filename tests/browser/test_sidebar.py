"""The list of chats: grouped, renamed in place, deleted with care."""

import re

from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.pages import ask, last_answer
from tests.browser.scripted import ScriptedChat

CURRENT = ".chat-link a[aria-current]"


def start_chat(page: Page, text: str) -> None:
    page.goto("/")
    ask(page, text)
    page.wait_for_url("**/c/*")
    expect(last_answer(page)).not_to_have_attribute("data-status", "running", timeout=90_000)


def rename(page: Page, title: str, key: str) -> None:
    page.locator(CURRENT).dblclick()
    box = page.get_by_role("textbox", name="Title")
    box.fill(title)
    box.press(key)


def test_a_chat_is_renamed_by_a_double_click(reader: BrowserContext, page: Page) -> None:
    start_chat(page, "Rename me")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        rename(page, "A better title", "Enter")
        expect(page.locator(CURRENT)).to_contain_text("A better title")
    page.reload()
    expect(page.locator(CURRENT)).to_contain_text("A better title")
    # By hand, so that no title which the model finds meanwhile can pass for it.
    rename(page, "Nonsense", "Escape")
    expect(page.locator(CURRENT)).to_contain_text("A better title")
    page.reload()
    expect(page.locator(CURRENT)).to_contain_text("A better title")


def test_escape_closes_a_menu_before_it_lets_go_of_what_is_chosen(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Choose me")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    page.locator(CURRENT).click(modifiers=["Shift"])
    expect(page.locator(".bulk")).to_be_visible()
    page.click(".person")
    expect(page.locator("#account-menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#account-menu")).to_be_hidden()
    expect(page.locator(".bulk")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".bulk")).to_be_hidden()


def test_a_chat_that_comes_late_leaves_the_field_in_which_it_is_renamed(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Rename me late")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    page.locator(".sidebar__new [data-new-chat]").click()
    held: list[Route] = []
    assert chat.conversation is not None
    page.route(f"**/api/conversations/{chat.conversation['id']}", lambda route: held.append(route))
    page.locator(".chat-link a", has_text="Rename me late").dblclick()
    title = page.get_by_role("textbox", name="Title")
    title.fill("Half a ti")
    while not held:
        page.wait_for_timeout(20)
    held[0].fallback()
    expect(page.locator(".message--user")).to_have_count(1)
    expect(title).to_be_focused()
    expect(title).to_have_value("Half a ti")


def test_news_from_between_the_page_and_its_socket_are_shown(
    reader: BrowserContext, page: Page
) -> None:
    start_chat(page, "Rename me from elsewhere")
    id = page.locator(CURRENT).locator("..").get_attribute("data-conversation")
    csrf = page.evaluate("JSON.parse(document.querySelector('#bootstrap').textContent).csrf")

    def rename_meanwhile(route: Route) -> None:
        """The page is made and has no socket yet when another tab renames the chat."""
        renamed = reader.request.patch(
            f"/api/conversations/{id}",
            data={"title": "Renamed elsewhere"},
            headers={"X-CSRFToken": csrf, "Referer": page.url},
        )
        assert renamed.ok, renamed.text()
        route.continue_()

    page.route("**/js/chat*.js", rename_meanwhile, times=1)
    page.reload()
    expect(page.locator(CURRENT)).to_contain_text("Renamed elsewhere")  # and that it is warm
    expect(page).to_have_title(re.compile("Renamed elsewhere"))


def test_the_keys_delete_a_chat_only_after_a_question(reader: BrowserContext, page: Page) -> None:
    start_chat(page, "Delete me")
    row = page.locator(".chat-link:has([aria-current])")
    id = row.get_attribute("data-conversation")
    page.keyboard.press("Control+Shift+Backspace")
    page.get_by_role("button", name="Cancel").click()
    expect(row).to_have_count(1)
    page.keyboard.press("Control+Shift+Backspace")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(f".chat-link[data-conversation='{id}']")).to_have_count(0)
    expect(page).to_have_url("/")
    expect(page.locator(".toast")).to_contain_text("deleted")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(f"[data-conversation='{id}']")).to_have_count(1)


def test_the_sidebar_folds_and_stays_folded(reader: BrowserContext, page: Page) -> None:
    page.goto("/")
    page.locator(".sidebar [data-toggle-sidebar]").click()
    expect(page.locator(".sidebar")).to_be_hidden()
    page.reload()
    expect(page.locator(".sidebar")).to_be_hidden()
    page.keyboard.press("Control+Shift+S")
    expect(page.locator(".sidebar")).to_be_visible()


def test_on_a_phone_the_sidebar_is_a_sheet(reader: BrowserContext, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")
    expect(page.locator(".sidebar")).to_be_hidden()
    page.get_by_role("button", name="Open the sidebar").click()
    expect(page.locator(".sidebar")).to_be_visible()
    assert page.locator("#chat").evaluate("chat => chat.inert")
    page.keyboard.press("Escape")
    expect(page.locator(".sidebar")).to_be_hidden()
    expect(page.get_by_role("button", name="Open the sidebar")).to_be_focused()
