"""Files that are dropped, fail and are tried again, and long texts that are never lost."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.pages import INPUT, ask
from tests.browser.scripted import ScriptedChat
from tests.browser.test_accessibility import expect_no_faults
from tests.browser.test_composer_extras import LONG, chips, paste

ATTACH = "**/api/documents/attach*"
OVERLAY = ".drop-overlay"
NO_FILES = "A temporary chat keeps no files."
READY: dict[str, Any] = {
    "id": "0199a1b2-0000-7000-8000-00000000000d",
    "name": "minutes.txt",
    "version": {"state": "ready", "reason": "", "num_chunks": 1, "num_embedded": 1},
}
_DRAG = """
  ([type, where]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["words"], "minutes.txt", { type: "text/plain" }));
    const event = new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true });
    return document.querySelector(where).dispatchEvent(event);
  }
"""


def drag(page: Page, event: str, where: str) -> bool:
    """Whether the browser was left to open the file."""
    return bool(page.evaluate(_DRAG, [event, where]))


def test_a_file_may_be_dropped_anywhere(chat: ScriptedChat, page: Page) -> None:
    page.route(ATTACH, lambda route: route.fulfill(status=201, json=READY))
    assert not drag(page, "dragover", "#sidebar")
    expect(page.locator(OVERLAY)).to_contain_text(re.compile(r"PDF, Word.*Up to \d+ MiB each\."))
    expect_no_faults(page)
    drag(page, "dragleave", "#sidebar")
    expect(page.locator(OVERLAY)).to_have_count(0)
    drag(page, "dragover", "#sidebar")
    expect(page.locator(OVERLAY)).to_be_visible()
    assert not drag(page, "drop", "#sidebar")
    expect(page.locator(OVERLAY)).to_have_count(0)
    expect(chips(page)).to_have_attribute("data-state", "ready")
    expect(chips(page)).to_contain_text("5 bytes")


def test_a_temporary_chat_says_that_it_keeps_none(chat: ScriptedChat, page: Page) -> None:
    page.locator("[data-temporary]").click()
    assert not drag(page, "dragover", "#composer-input")
    expect(page.locator(OVERLAY)).to_have_text(NO_FILES)
    assert not drag(page, "drop", "#composer-input")
    expect(page.locator(OVERLAY)).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text(NO_FILES)
    page.locator(".toast").get_by_role("button", name="Dismiss").click()
    page.keyboard.press("Control+u")  # and no page with the source of this one
    expect(page.locator(".toast")).to_contain_text(NO_FILES)
    expect(chips(page)).to_have_count(0)


def test_under_a_dialog_a_dropped_file_is_neither_opened_nor_attached(
    chat: ScriptedChat, page: Page
) -> None:
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()
    for event in ("dragover", "drop"):
        assert not drag(page, event, "#palette")
    page.wait_for_timeout(200)
    expect(page.locator(OVERLAY)).to_have_count(0)
    expect(chips(page)).to_have_count(0)


def test_a_file_that_did_not_arrive_is_tried_again(chat: ScriptedChat, page: Page) -> None:
    page.route(ATTACH, lambda route: route.fulfill(status=201, json=READY))
    page.route(ATTACH, lambda route: route.abort(), times=1)
    file: Any = {"name": "minutes.txt", "mimeType": "text/plain", "buffer": b"words"}
    page.locator(".composer__files").set_input_files(file)
    expect(chips(page)).to_contain_text("cannot be reached")
    page.fill(INPUT, "What was said?")
    page.press(INPUT, "Enter")
    expect(page.locator("#composer-hint")).to_contain_text("Try it again or remove it")
    expect_no_faults(page)
    chips(page).get_by_role("button", name="Try again").click()
    expect(chips(page)).to_have_attribute("data-state", "ready")
    expect(chips(page).get_by_role("button", name="Remove minutes.txt")).to_be_focused()
    expect(page.locator("#composer-hint")).not_to_contain_text("Try it again")
    page.press(INPUT, "Enter")
    expect(page.locator(".message--user")).to_have_count(1)
    assert chat.heard_of("message.send")[0]["sources"]["documents"] == [READY["id"]]


def test_a_pasted_text_that_did_not_arrive_goes_into_the_message(
    chat: ScriptedChat, page: Page
) -> None:
    page.route(ATTACH, lambda route: route.abort())
    paste(page, LONG)
    expect(chips(page)).to_have_attribute("data-state", "failed")
    expect_no_faults(page)
    chips(page).get_by_role("button", name="Put it into the message").click()
    expect(chips(page)).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value(LONG)
    expect(page.locator(INPUT)).to_be_focused()


def test_a_text_is_pasted_as_text_where_no_file_can_be_made_of_it(
    chat: ScriptedChat, page: Page
) -> None:
    page.route(re.compile(r"/source-picker\b.*\.js"), lambda route: route.abort())
    paste(page, LONG)
    expect(page.locator(INPUT)).to_have_value(LONG)


def test_a_file_that_is_not_there_yet_does_not_go_with_the_page(
    chat: ScriptedChat, page: Page
) -> None:
    unloads: list[str] = []
    page.on("dialog", lambda dialog: (unloads.append(dialog.type), dialog.dismiss()))
    page.route(ATTACH, lambda route: route.abort())
    page.locator(INPUT).click()
    paste(page, LONG)
    expect(chips(page)).to_have_attribute("data-state", "failed")
    page.locator(".sidebar__new [data-new-chat]").click()
    page.evaluate("location.reload()")
    page.wait_for_timeout(300)
    expect(chips(page)).to_have_count(1)
    assert unloads == ["beforeunload"]


def test_a_refused_message_has_its_files_again_in_the_chat_that_was_left(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "First")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(".message")).to_have_count(0)
    page.route(ATTACH, lambda route: route.fulfill(status=201, json=READY))
    file: Any = {"name": "minutes.txt", "mimeType": "text/plain", "buffer": b"words"}
    page.locator(".composer__files").set_input_files(file)
    expect(chips(page)).to_have_attribute("data-state", "ready")
    chat.auto_accept = False
    ask(page, "What was said?")
    page.get_by_role("link", name="First", exact=True).click()
    expect(page.locator(".message--user .message__text")).to_have_text("First")
    client_id = chat.heard_of("message.send")[-1]["client_id"]
    refused = {"type": "error", "client_id": client_id, "code": "insufficient_quota"}
    chat.say({**refused, "message": "Your budget is used up."})
    expect(page.locator(".toast")).to_contain_text("used up")
    expect(chips(page)).to_have_count(0)
    page.goto("/")  # as it is kept
    expect(page.locator(INPUT)).to_have_value("What was said?")
    expect(chips(page)).to_contain_text("minutes.txt")
