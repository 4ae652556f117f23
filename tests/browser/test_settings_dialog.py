"""The settings over the chat: nothing of it is lost, whatever is done there."""

from contextlib import closing
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.browser.scripted import ScriptedChat
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.browser.test_attaching import drag
from tests.sites import Site

_numbers = count(1)


@pytest.fixture
def mine(context: BrowserContext, vitrine_server: Site, page: Page) -> Page:
    """The chat page of somebody whose settings no other test needs."""
    vitrine_server.set_up()
    with closing(vitrine_server.sign_up(f"Settler{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    return page


def settings(page: Page) -> Locator:
    return page.locator("dialog.settings-dialog[open]")


def open_by_menu(page: Page) -> Locator:
    page.click(".person")
    page.locator("#account-menu a[href='/settings/']").click()
    expect(settings(page).get_by_role("heading", name="Settings")).to_be_focused()
    return settings(page)


def go(page: Page, name: str) -> None:
    settings(page).locator(".settings__pages > a").filter(has_text=name).first.click()


def test_the_chat_is_still_there_when_they_are_closed(chat: ScriptedChat, page: Page) -> None:
    ask(page, "A question")
    chat.write("r1", "Half of ")
    page.fill(INPUT, "Half a thought")
    address = page.url
    open_by_menu(page)
    assert page.url == f"{address}#/settings/"
    chat.write("r1", "an answer.", offset=8)
    chat.finish("r1")
    page.keyboard.press("Escape")
    expect(settings(page)).to_have_count(0)
    expect(page.locator(".person")).to_be_focused()
    page.wait_for_url(address)
    expect(last_answer(page)).to_contain_text("Half of an answer.")
    expect(page.locator(INPUT)).to_have_value("Half a thought")
    assert not chat.heard_of("run.stop")


def test_back_goes_page_by_page_and_then_to_the_chat(chat: ScriptedChat, page: Page) -> None:
    ask(page, "A question")
    chat.write("r1", "An answer.")
    chat.finish("r1")
    page.locator("message-list").evaluate("list => (list.firstElementChild.dataset.same = 'yes')")
    address = page.url
    page.keyboard.press("Control+,")
    expect(settings(page).get_by_role("heading", name="Settings")).to_be_visible()
    go(page, "Prompts")
    expect(settings(page).get_by_role("heading", name="Prompts")).to_be_focused()
    page.go_back()
    expect(settings(page).get_by_role("heading", name="Settings")).to_be_visible()
    page.go_back()
    expect(settings(page)).to_have_count(0)
    assert page.url == address
    page.go_forward()
    expect(settings(page).get_by_role("heading", name="Settings")).to_be_visible()
    page.get_by_role("button", name="Close the settings").click()
    expect(settings(page)).to_have_count(0)
    page.wait_for_url(address)
    # The chat was not even drawn anew.
    expect(page.locator("message-list > [data-same]")).to_have_count(1)


def test_a_reload_opens_them_over_the_same_chat(mine: Page) -> None:
    open_by_menu(mine)
    go(mine, "Keyboard")
    expect(settings(mine).locator("#keyboard")).to_be_in_viewport()
    mine.reload()
    expect(settings(mine).locator("#keyboard")).to_be_in_viewport()
    mine.keyboard.press("Escape")
    expect(settings(mine)).to_have_count(0)
    expect(mine.locator(INPUT)).to_be_visible()


def test_an_address_that_begins_with_them_is_left_for_the_chat(mine: Page) -> None:
    mine.goto("/#/settings/prompts")
    expect(settings(mine).get_by_role("heading", name="Prompts")).to_be_visible()
    go(mine, "Usage")
    expect(settings(mine).get_by_role("heading", name="Usage")).to_be_visible()
    mine.keyboard.press("Escape")
    expect(settings(mine)).to_have_count(0)
    mine.wait_for_url(lambda url: url.endswith("/"))
    mine.wait_for_timeout(200)
    expect(settings(mine)).to_have_count(0)


def test_a_form_is_sent_and_its_faults_are_shown_there(mine: Page) -> None:
    open_by_menu(mine)
    go(mine, "Prompts")
    settings(mine).get_by_role("link", name="New prompt").click()
    settings(mine).get_by_label("Name").fill("Not a name")
    settings(mine).get_by_label("Text").fill("Write it in rhyme.")
    settings(mine).get_by_role("button", name="Save").click()
    expect(settings(mine).locator("[aria-invalid=true]")).to_be_focused()
    expect(settings(mine).get_by_label("Text")).to_have_value("Write it in rhyme.")
    settings(mine).get_by_label("Name").fill("rhyme")
    settings(mine).get_by_role("button", name="Save").click()
    expect(settings(mine).locator(".notice")).to_have_text("Saved.")
    assert mine.url.endswith("#/settings/prompts")
    settings(mine).get_by_role("link", name="Edit /rhyme").click()
    settings(mine).get_by_role("button", name="Delete").click()
    expect(settings(mine).locator(".notice")).to_have_text("/rhyme is deleted.")


def test_an_assistant_that_was_made_can_be_chosen_at_once(mine: Page) -> None:
    open_by_menu(mine)
    go(mine, "Assistants")
    settings(mine).get_by_role("link", name="New assistant").click()
    settings(mine).get_by_label("Name").fill("Rhymer")
    settings(mine).get_by_role("button", name="Save").click()
    expect(settings(mine).locator(".notice")).to_have_text("Saved.")
    mine.keyboard.press("Escape")
    mine.click(".picker")
    expect(mine.locator("[data-assistant]").filter(has_text="Rhymer")).to_be_visible()


def test_a_form_that_is_closed_while_it_is_sent_changes_the_chat_too(mine: Page) -> None:
    mine.goto("/#/settings/assistants/new")
    settings(mine).get_by_label("Name").fill("Hasty")
    held: list[Route] = []
    mine.route("**/settings/assistants/new", lambda route: held.append(route))
    settings(mine).get_by_role("button", name="Save").click()
    expect(mine.locator("dialog.settings-dialog")).to_have_attribute("aria-busy", "true")
    mine.get_by_role("button", name="Close the settings").click()
    with mine.expect_response("**/api/assistants"):
        mine.locator("#confirm").get_by_role("button", name="Leave").click()
    expect(settings(mine)).to_have_count(0)
    with mine.expect_response("**/api/assistants"):
        held[0].continue_()
    mine.click(".picker")
    expect(mine.locator("[data-assistant]").filter(has_text="Hasty")).to_be_visible()


def test_what_is_written_in_a_form_is_not_lost_by_a_key(mine: Page) -> None:
    open_by_menu(mine)
    go(mine, "Personalisation")
    settings(mine).get_by_label("About you").fill("I like glass.")
    mine.keyboard.press("Escape")
    expect(mine.get_by_role("heading", name="Leave without saving?")).to_be_visible()
    mine.locator("#confirm").get_by_role("button", name="Cancel").click()
    expect(settings(mine).get_by_label("About you")).to_have_value("I like glass.")
    go(mine, "Usage")
    mine.locator("#confirm").get_by_role("button", name="Leave").click()
    expect(settings(mine).get_by_role("heading", name="Usage")).to_be_visible()


def test_only_a_whole_click_beside_them_closes_them(mine: Page) -> None:
    dialog = open_by_menu(mine)
    box = dialog.bounding_box()
    assert box is not None
    heading = dialog.get_by_role("heading", name="Settings")
    heading.hover()
    mine.mouse.down()
    mine.mouse.move(5, box["y"] + 5)
    mine.mouse.up()
    expect(heading).to_be_visible()
    mine.mouse.click(5, box["y"] + 5)
    expect(settings(mine)).to_have_count(0)


def test_back_asks_before_it_leaves_what_is_written(mine: Page) -> None:
    open_by_menu(mine)
    go(mine, "Personalisation")
    about = settings(mine).get_by_label("About you")
    about.fill("I like glass.")
    mine.go_back()
    expect(mine.get_by_role("heading", name="Leave without saving?")).to_be_visible()
    mine.locator("#confirm").get_by_role("button", name="Cancel").click()
    expect(about).to_have_value("I like glass.")
    assert mine.url.endswith("#/settings/personalisation")
    mine.go_back()
    mine.locator("#confirm").get_by_role("button", name="Leave").click()
    expect(settings(mine).get_by_role("heading", name="Settings")).to_be_focused()
    assert mine.url.endswith("#/settings/")
    mine.go_back()
    expect(settings(mine)).to_have_count(0)


def test_a_language_is_saved_as_it_is_chosen_and_other_tabs_are_told(mine: Page) -> None:
    other = mine.context.new_page()
    other.goto("/")
    other.locator("status-bar:defined").wait_for(state="attached")
    mine.fill(INPUT, "Half a thought")
    open_by_menu(mine)
    settings(mine).get_by_label("Language").select_option("de")
    expect(settings(mine).get_by_label("Sprache")).to_be_focused()
    mine.keyboard.press("Escape")
    expect(mine.get_by_placeholder("Frag, was du willst")).to_have_value("Half a thought")
    expect(other.locator(".toast")).to_contain_text("Another language was chosen")
    other.get_by_role("button", name="Reload").click()
    expect(other.get_by_placeholder("Frag, was du willst")).to_be_visible()


def test_in_a_temporary_chat_nothing_is_reloaded_by_itself(mine: Page) -> None:
    mine.click("[data-temporary]")
    open_by_menu(mine)
    settings(mine).get_by_label("Language").select_option("de")
    expect(settings(mine).get_by_role("heading", name="Einstellungen")).to_be_visible()
    expect(settings(mine).locator(".settings")).to_have_attribute("lang", "de")
    expect(settings(mine).locator(".toast")).to_contain_text("once it is loaded again")
    expect(mine.locator("html")).to_have_attribute("lang", "en")
    mine.keyboard.press("Escape")
    expect(mine.locator("[data-temporary]")).to_have_attribute("aria-pressed", "true")


def test_a_file_dropped_on_the_import_is_imported(mine: Page) -> None:
    drop = "dialog.settings-dialog [data-import]"
    with mine.expect_response("**/api/imports"):  # it asks what is under way, and listens
        mine.goto("/#/settings/")
    assert not drag(mine, "dragover", drop)
    assert not drag(mine, "drop", drop)
    expect(settings(mine).locator("[data-import-panel]")).to_contain_text("minutes.txt")
    assert drag(mine, "dragover", ".composer__files")  # a choice of a file is the browser's
    expect(mine.locator(".drop-overlay")).to_have_count(0)


def test_what_asks_for_the_password_again_is_a_page(mine: Page) -> None:
    open_by_menu(mine)
    go(mine, "Security")
    mine.wait_for_url("**/settings/security/")
    mine.go_back()
    expect(mine.locator(INPUT)).to_be_visible()


def test_back_from_where_they_have_ended_leads_to_the_chat(mine: Page) -> None:
    open_by_menu(mine)
    cookies: list[Any] = [*mine.context.cookies()]
    mine.context.clear_cookies()
    go(mine, "Usage")
    mine.wait_for_url(lambda url: "/accounts/login/" in url)  # the session has ended elsewhere
    mine.context.add_cookies(cookies)
    mine.go_back()
    expect(mine.locator(INPUT)).to_be_visible()
    assert "#" not in mine.url
    expect(settings(mine)).to_have_count(0)


def test_without_the_server_they_say_so(mine: Page) -> None:
    mine.route("**/settings/", lambda route: route.abort())
    mine.keyboard.press("Control+,")
    expect(settings(mine).get_by_role("alert")).to_contain_text("The server cannot be reached.")
    mine.unroute("**/settings/")
    settings(mine).get_by_role("button", name="Try again").click()
    expect(settings(mine).get_by_role("heading", name="Settings")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/settings/", "/settings/assistants/new", "/settings/api"])
def test_they_are_accessible(mine: Page, theme: str, path: str) -> None:
    mine.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    mine.goto(f"/#{path}")
    expect(settings(mine).locator("h1")).to_be_visible()
    ids = mine.evaluate("[...document.querySelectorAll('[id]')].map(({id}) => id)")
    twice = {name for name in ids if ids.count(name) > 1 and not name.startswith("icon-")}
    assert twice == set()
    expect_no_faults(mine)
    expect_no_sideways_scrolling(mine)
    expect_no_faults(mine)
    box = settings(mine).locator(".settings-dialog__body")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
