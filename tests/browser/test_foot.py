"""The foot of the chat, and what must not cover it: toasts and a keyboard of glass."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import ask, distance_to_end, last_answer
from tests.browser.scripted import ScriptedChat
from tests.sites import wait_until

COVER = """
  (px) => {
    Object.defineProperty(visualViewport, "height", { configurable: true, get: () => innerHeight - px });
    visualViewport.dispatchEvent(new Event("resize"));
  }
"""


def box_of(page: Page, selector: str) -> Any:
    box = page.locator(selector).bounding_box()
    assert box
    return box


@pytest.mark.parametrize("width", [390, 1280])
def test_a_toast_stands_above_the_composer(chat: ScriptedChat, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 720})
    ask(page, "Hello")
    chat.write("r1", "Hello there.")
    chat.finish("r1")
    expect(last_answer(page).locator(".message__took")).to_be_visible()
    chat.say({"type": "error", "code": "x", "message": "Something is to be told."})
    expect(page.locator(".toast")).to_be_visible()

    def is_above() -> bool:  # as soon as the composer, which glides down, has arrived
        toast = box_of(page, ".toast")
        return bool(300 < toast["y"] <= box_of(page, "#foot")["y"] - toast["height"])

    wait_until(is_above, timeout_s=10, what="the toast above the composer")


def test_a_keyboard_over_the_page_leaves_the_composer_and_the_last_line(
    chat: ScriptedChat, page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    ask(page, "Hello")
    chat.write("r1", "A line.\n\n" * 60)
    chat.finish("r1")
    expect(last_answer(page).locator(".message__took")).to_be_visible()
    page.evaluate("document.querySelector('#jump').click()")
    page.evaluate(COVER, 300)

    def is_above() -> bool:
        send = box_of(page, ".composer__send")
        return bool(send["y"] + send["height"] <= 544) and distance_to_end(page) < 2

    wait_until(is_above, timeout_s=10, what="the composer above the keyboard")
    page.evaluate(COVER, 0)
    wait_until(lambda: box_of(page, ".composer__send")["y"] > 544, timeout_s=10, what="all of it")
