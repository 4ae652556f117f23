"""How full the context is: counted while somebody types, warm and alarming in time."""

import re
from typing import Any

from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.pages import INPUT, ask
from tests.browser.scripted import ScriptedChat, meter_of
from tests.browser.test_accessibility import expect_no_faults


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


def test_a_meter_that_comes_under_a_resting_pointer_opens_nothing(
    chat: ScriptedChat, page: Page
) -> None:
    meter, card = page.locator("token-meter"), page.locator(".meter-card")
    ask(page, "Hello")  # the composer goes to its place below
    chat.finish("r1")
    chat.meter = meter_of(0, 20)
    page.fill(INPUT, "Hello")
    expect(meter).to_be_visible()
    box = page.locator(".meter").bounding_box()
    assert box
    chat.meter = None
    page.fill(INPUT, "And now?")
    expect(meter).to_be_hidden()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    chat.meter = meter_of(0, 20)
    page.fill(INPUT, "Hello again")
    expect(meter).to_be_visible()
    page.wait_for_timeout(500)
    assert page.evaluate("document.querySelector('.meter').matches(':hover')")
    expect(card).to_be_hidden()
    page.mouse.move(box["x"] + box["width"] / 2 + 4, box["y"] + box["height"] / 2)
    expect(card).to_be_visible()


def test_what_would_be_left_out_is_shown_where_it_is(chat: ScriptedChat, page: Page) -> None:
    for number in (1, 2):
        ask(page, f"Question {number}")
        chat.write(f"r{number}", "An answer.")
        chat.finish(f"r{number}")
    left_out = {"before": "u2", "num_messages": 2, "is_new": True}
    chat.meter = meter_of(2400, 260, left_out=left_out)
    page.fill(INPUT, "And a long one")
    line = page.locator(".left-out")
    expect(line).to_have_text("With your message, 2 messages above leave the model’s view")
    assert line.evaluate("line => line.nextElementSibling.dataset.message") == "u2"
    expect_no_faults(page)
    edit = page.locator(".message--user").last.locator("[data-act=edit]")
    edit.focus()
    assert chat.conversation is not None
    known = {**chat.conversation, "title": "Both", "version": 9}
    chat.say({"type": "conversation.changed", "conversation": known})
    expect(page).to_have_title("Both · Vitrine")
    expect(edit).to_be_focused()
    chat.meter = meter_of(400, 26)
    page.fill(INPUT, "Short")
    expect(line).to_have_count(0)


def test_what_is_picked_counts(chat: ScriptedChat, page: Page) -> None:
    asked: list[Any] = []

    def measure(route: Route) -> None:
        asked.append(route.request.post_data_json)
        more = [{"name": "looked_up", "tokens": 512}] if asked[-1]["sources"] else []
        meter = meter_of(0, 20)
        route.fulfill(json={**meter, "segments": [*meter["segments"], *more]})

    page.route(re.compile(r"/api/meter$"), measure)
    one = {"num_documents": 3, "is_mine": True, "owner": {"name": "Reader"}}
    collections = [{"id": "0199a1b2-0000-7000-8000-0000000000bb", "name": "Company", **one}]
    page.route(
        re.compile(r"/api/collections$"),
        lambda route: route.fulfill(json={"collections": collections}),
    )
    page.locator(INPUT).press_sequentially("What? #comp")
    page.get_by_role("option").wait_for()
    page.locator(INPUT).press("Tab")
    expect(page.locator("[data-part=looked-up]").first).to_be_attached()
    page.get_by_role("button", name="Context:").hover()
    expect(page.locator(".meter-card")).to_contain_text("Documents, up to512")
    assert asked[-1]["sources"] == {"collections": [collections[0]["id"]], "documents": []}
    page.locator(".picked__remove").click()
    expect(page.locator("[data-part=looked-up]")).to_have_count(0)
    assert asked[-1]["sources"] is None


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
