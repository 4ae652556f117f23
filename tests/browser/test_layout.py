"""What stands where: on phones, and in a page that runs from right to left."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.pages import INPUT
from tests.browser.scripted import ScriptedChat

LONG = "Explain it in one paragraph, for somebody who has never heard of it, and keep the numbers."
# Where the words of titles begin and end, not the boxes that they are in.
TITLES = """async (titles) => {
  document.querySelector("chat-sidebar").show({
    pinned: [], folders: [], next: null, items: titles.map((title, i) => ({
      id: `c${i}`, url: `/c/c${i}`, title, version: 1, running: [], folder: null, pinned: false,
      archived: false, tags: [], updated_at: new Date(Date.now() - i).toISOString(),
    })) });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return [...document.querySelectorAll(".chat-link[data-conversation] a")].map((link) => {
    const range = document.createRange();
    range.selectNodeContents(link);
    const { left, right } = range.getBoundingClientRect();
    return [Math.round(left), Math.round(right)];
  });
}"""


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


def test_the_keys_are_read_from_the_first_one(chat: ScriptedChat, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 500})
    page.keyboard.press("Control+/")
    expect(page.locator("#shortcuts-title")).to_be_focused()
    assert page.evaluate("document.querySelector('#shortcuts').scrollTop") == 0
    expect(page.locator("#shortcuts-title")).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(page.locator("#shortcuts button")).to_be_focused()


def test_states_of_models_stand_below_one_another(chat: ScriptedChat, page: Page) -> None:
    page.click("model-picker .picker")
    expect(page.locator("#models-list .badge")).to_have_count(3)
    ends = page.eval_on_selector_all(
        "#models-list .badge", "all => all.map((one) => one.getBoundingClientRect().right)"
    )
    assert max(ends) - min(ends) < 1


def test_titles_of_another_direction_stand_on_the_side_of_the_page(
    reader: BrowserContext, page: Page
) -> None:
    ScriptedChat(page)
    for language, side in (("en", 0), ("ar", 1)):
        page.set_extra_http_headers({"Accept-Language": language})
        page.goto("/", wait_until="networkidle")  # its own chats are listed
        spans = page.evaluate(TITLES, ["Names for a cat", "مرحبا بالعالم"])
        assert abs(spans[0][side] - spans[1][side]) <= 3
        assert spans[0][1 - side] != spans[1][1 - side]


def test_a_field_that_is_refused_is_drawn_so(page: Page) -> None:
    page.goto("/accounts/signup/")
    for name, value in (("name", "Eve"), ("email", "eve@example.org"), ("password1", "password")):
        page.fill(f"[name={name}]", value)
    colour = "one => getComputedStyle(one).borderTopColor"
    usual = page.locator("[name=password1]").evaluate(colour)
    page.click("main form button")
    refused = page.locator("[name=password1][aria-invalid=true]")
    refused.wait_for()
    assert refused.evaluate(colour) != usual
    error = page.locator(".errorlist").first.evaluate("one => getComputedStyle(one).color")
    assert refused.evaluate(colour) == error


def ask_on_glass(page: Page, text: str) -> None:
    """There Enter begins a line."""
    page.fill(INPUT, text)
    page.click(".composer__send")
    page.locator(".message--user").wait_for()
