"""How full the context is: counted while somebody types, warm and alarming in time."""

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT
from tests.browser.scripted import ScriptedChat, meter_of


def test_the_meter_warns_in_words_before_something_is_left_out(
    chat: ScriptedChat, page: Page
) -> None:
    meter, words = page.locator("token-meter"), page.locator(".meter__words")
    chat.meter = meter_of(0, 20)
    page.fill(INPUT, "Hello")
    expect(meter).to_have_attribute("data-level", "calm")
    expect(words).to_be_hidden()
    button = page.get_by_role("button", name="Context: 414 of 3,072 tokens, 13%")
    button.hover()
    expect(page.locator(".meter-card")).to_contain_text("System prompt and tools")
    page.mouse.move(0, 0)
    expect(page.locator(".meter-card")).to_be_hidden()
    chat.meter = meter_of(1900, 260)
    page.fill(INPUT, "Hello again")
    expect(words).to_have_text("83% of the room in this model’s context is full.")
    chat.meter = meter_of(2400, 260, left_out={"num_messages": 4, "is_new": True})
    page.fill(INPUT, "Hello once more")
    expect(words).to_contain_text("The oldest 4 messages will be left out")
    expect(meter).to_have_attribute("data-level", "alarming")
    chat.meter = None
    page.fill(INPUT, "And now?")
    expect(meter).to_be_hidden()


def test_a_real_draft_is_counted_and_a_real_chat_is_warm(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    expect(page.locator("token-meter")).to_be_hidden()
    page.fill(INPUT, "What is 17 * 23?")
    expect(page.locator("token-meter")).to_be_visible(timeout=20_000)
    page.press(INPUT, "Enter")
    row = page.locator(".chat-link").first
    expect(row.locator("[data-warmth=warm]")).to_have_count(1, timeout=60_000)
