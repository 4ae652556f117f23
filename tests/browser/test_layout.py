"""What stands where: on phones, and in a page that runs from right to left."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import INPUT
from tests.browser.scripted import ScriptedChat

LONG = "Explain it in one paragraph, for somebody who has never heard of it, and keep the numbers."


def _box(page: Page, selector: str) -> dict[str, float]:
    box = page.locator(selector).bounding_box()
    assert box, selector
    return {**box, "right": box["x"] + box["width"], "bottom": box["y"] + box["height"]}


@pytest.fixture
def phone(browser: Browser, base_url: str, reader_cookies: list[Any]) -> Iterator[Page]:
    context = browser.new_context(
        base_url=base_url,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        service_workers="block",
        reduced_motion="reduce",
    )
    context.add_cookies(reader_cookies)
    yield context.new_page()
    context.close()


@pytest.fixture
def chat_on_phone(phone: Page) -> ScriptedChat:
    chat = ScriptedChat(phone)
    phone.goto("/")
    phone.locator("status-bar:defined").wait_for(state="attached")
    return chat


def test_a_second_line_has_the_whole_width_of_a_phone(
    chat_on_phone: ScriptedChat, phone: Page
) -> None:
    phone.fill(INPUT, "Short")
    assert _box(phone, INPUT)["x"] >= _box(phone, ".composer__attach")["right"]
    phone.fill(INPUT, LONG)
    expect(phone.locator(".composer[data-tall]")).to_be_attached()
    text, form, send = (_box(phone, one) for one in (INPUT, ".composer", ".composer__send"))
    assert text["width"] > 0.95 * form["width"]
    assert text["bottom"] <= send["y"] + 1
    assert send["bottom"] <= form["bottom"]
    phone.fill(INPUT, "")
    expect(phone.locator(".composer[data-tall]")).not_to_be_attached()
    assert _box(phone, INPUT)["x"] >= _box(phone, ".composer__attach")["right"]


def test_buttons_of_an_editor_share_a_row_of_a_phone(
    chat_on_phone: ScriptedChat, phone: Page
) -> None:
    ask_on_glass(phone, "Good evening")
    chat_on_phone.write("r1", "Good evening.")
    chat_on_phone.finish("r1")
    assert _box(phone, ".message--assistant .message__took")["height"] >= 24
    phone.locator(".message--user [data-act=edit]").click()
    cancel, send = (_box(phone, f".editor__row button >> nth={n}") for n in (0, 1))
    assert cancel["y"] == send["y"]
    assert _box(phone, ".editor__about")["bottom"] <= cancel["y"]


def ask_on_glass(page: Page, text: str) -> None:
    """There Enter begins a line."""
    page.fill(INPUT, text)
    page.click(".composer__send")
    page.locator(".message--user").wait_for()
