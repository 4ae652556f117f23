"""The page in other languages, one of them from right to left."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import ask, last_answer
from tests.browser.scripted import ScriptedChat
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling

in_arabic = pytest.mark.browser_context_args(locale="ar", viewport={"width": 1280, "height": 720})


def middle_of(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box
    return box["x"] + box["width"] / 2


@in_arabic
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_chat_in_arabic_runs_from_right_to_left(
    chat: ScriptedChat, page: Page, theme: str
) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    assert middle_of(page, ".sidebar") > 1280 / 2 > middle_of(page, ".composer__send")
    expect(page.get_by_role("heading", name="مرحبًا")).to_be_visible()
    ask(page, "Hello")
    chat.phase("r1", "prefill", done=6210, total=8900, cached=5100)
    phase = last_answer(page).locator(".phase__words")
    expect(phase).to_contain_text("يقرأ 6,210 من 8,900 رمز · 5,100 من الذاكرة المؤقتة")
    chat.write("r1", "Hello there.\n\n```python\nprint(1)\n```")
    chat.finish("r1")
    expect(page.get_by_role("button", name="كيف نشأت هذه الإجابة")).to_be_visible()
    code = page.locator(".code code")
    assert code.evaluate("code => getComputedStyle(code).direction") == "ltr"
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


@in_arabic
def test_settings_in_arabic(reader: BrowserContext, page: Page) -> None:
    for path in ("/settings/", "/settings/assistants/new", "/settings/prompts"):
        page.goto(path)
        expect(page.locator("html")).to_have_attribute("dir", "rtl")
        expect_no_faults(page)
        expect_no_sideways_scrolling(page)


def test_a_language_is_chosen_in_the_settings(reader: BrowserContext, page: Page) -> None:
    page.goto("/settings/")
    expect(page.locator("[data-language] button")).to_be_hidden()
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Einstellungen")).to_be_visible()
    expect(page.locator(".settings__keys")).to_contain_text("Neuer Chat")
    page.goto("/")
    expect(page.get_by_placeholder("Frag, was du willst")).to_be_visible()
    page.goto("/settings/")
    page.get_by_label("Sprache").select_option("")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
