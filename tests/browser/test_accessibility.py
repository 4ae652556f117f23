"""Every page, in both themes: no fault that axe finds, and nothing wider than a small phone."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.axe import told, violations
from tests.browser.pages import INPUT, ask
from tests.browser.screenshots import ANSWER
from tests.browser.scripted import ScriptedChat

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    # Of what is right, axe need not name each element: that takes more than half of its time.
    "resultTypes": ["violations"],
}
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])
END_OF_TRANSITIONS = """async () => {
  const late = new Promise((resolve) => setTimeout(resolve, 2000));
  await Promise.race([late, new Promise((resolve) => requestAnimationFrame(resolve))]);
  const moving = document.getAnimations().filter((one) => one instanceof CSSTransition);
  await Promise.race([late, Promise.allSettled(moving.map(({ finished }) => finished))]);
}"""  # colours fade from theme to theme; what is not painted may never end


def expect_no_faults(page: Page) -> None:
    page.evaluate(END_OF_TRANSITIONS)
    found = violations(page, RULES)
    assert not found, told(found)


def expect_no_sideways_scrolling(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 568})
    page.wait_for_timeout(100)
    widths = page.evaluate(
        "[document.documentElement, ...document.querySelectorAll('#scroller')]"
        ".map(box => box.scrollWidth - box.clientWidth)"
    )
    assert max(widths) <= 0


def fill(chat: ScriptedChat, page: Page) -> None:
    """A conversation with everything in it."""
    ask(page, "What is 17 * 23?")
    chat.event("r1", "tool_call", id="1", name="calculator", arguments='{"expression": "17 * 23"}')
    chat.event("r1", "tool_result", id="1", content="391", is_error=False, took_ms=2.0)
    chat.write("r1", "Let me think.", part="reasoning")
    chat.write("r1", ANSWER)
    chat.finish("r1")
    ask(page, "And now a failure, with averylongwordwithoutanyplacetobreak" * 3)
    chat.event("r2", "failed", code="x", message="The engine died.", retry_after_s=None)
    page.locator(".hljs-keyword").first.wait_for()


@THEMES
def test_sign_in(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.goto("/accounts/login/")
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


@THEMES
def test_empty_chat(chat: ScriptedChat, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    expect_no_faults(page)
    page.click("model-picker .picker")
    expect_no_faults(page)
    page.keyboard.press("Escape")
    expect_no_sideways_scrolling(page)
    expect_no_faults(page)


@THEMES
def test_long_chat(chat: ScriptedChat, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    fill(chat, page)
    chat.go_away()
    expect(page.locator("status-bar")).to_contain_text("No connection")
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


@THEMES
def test_columns_versions_and_what_waits(chat: ScriptedChat, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    ask(page, "One answer")
    chat.write("r1", ANSWER[:300])
    chat.event("r1", "stopped", chars=180, usage=None, timings=None)
    page.keyboard.press("Control+Shift+E")
    chat.write("r2", ANSWER[:300])
    chat.finish("r2")
    page.click("model-picker .picker")
    page.click("[data-beside='org/assistant-8b']")
    expect_no_faults(page)
    page.keyboard.press("Escape")
    ask(page, "Two answers")
    chat.write("r3", ANSWER)
    chat.finish("r3")
    chat.write("r4", ANSWER[:500])
    page.fill(INPUT, "Later, with averylongwordwithoutanyplacetobreak" * 3)
    page.press(INPUT, "Enter")
    expect(page.locator(".queue__item")).to_have_count(1)
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)
    page.keyboard.press("ArrowUp")
    page.locator(".message--user [data-act=edit]").first.click()
    expect(page.locator(".editor__input")).to_be_focused()
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


@THEMES
def test_a_temporary_chat(chat: ScriptedChat, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.click("[data-temporary]")
    ask(page, "Between us")
    chat.accept_temporary(ANSWER)
    expect(page.locator("[data-keep]")).to_be_visible()
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


@THEMES
def test_settings(reader: BrowserContext, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.goto("/settings/")
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


def test_answers_have_the_strong_contrast(chat: ScriptedChat, page: Page) -> None:
    fill(chat, page)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_timeout(300)
        enhanced = {"runOnly": {"type": "rule", "values": ["color-contrast-enhanced"]}}
        parts = ".message__parts > .prose > p, .message__parts > .prose > ul"
        found = violations(page, enhanced, parts)
        assert not found, told(found)


def test_the_theme_that_was_chosen_is_there_from_the_first_paint(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/settings/")
    page.get_by_text("Dark", exact=True).click()
    page.goto("/")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.goto("/settings/")
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()


def test_dialogs_take_and_give_back_the_focus(chat: ScriptedChat, page: Page) -> None:
    page.keyboard.press("Control+/")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#composer-input")).to_be_focused()


def test_links_skip_to_the_conversation_and_to_the_chats(chat: ScriptedChat, page: Page) -> None:
    page.locator("[data-toggle-sidebar]").first.click()
    address = page.url
    for name, selector in (
        ("Skip to the conversation", "#conversation"),
        ("Skip to the list of chats", "#chats"),
    ):
        link = page.get_by_role("link", name=name)
        link.focus()
        expect(link).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page.locator(selector)).to_be_focused()
    expect(page.locator("#chats")).to_be_visible()
    assert page.url == address
