"""An answer opens beside the chat, by pointer and by keyboard, and says what its trace says."""

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, ask, last_answer
from tests.browser.scripted import TRACE, ScriptedChat, tokens_of

PANEL = "side-panel"


def answered(chat: ScriptedChat, page: Page) -> None:
    ask(page, "How long?")
    chat.write("r1", "So long.")
    chat.finish("r1")
    expect(last_answer(page).locator(".message__took")).to_contain_text("412")


def test_the_footer_opens_the_waterfall_and_closes_it(chat: ScriptedChat, page: Page) -> None:
    answered(chat, page)
    last_answer(page).locator(".message__took").click()
    panel = page.locator(PANEL)
    expect(panel.locator(".span")).to_have_count(9)
    expect(panel.locator(".span").nth(3)).to_contain_text("8,900 tokens, 5,100 from the cache")
    expect(panel).to_contain_text("4bf92f3577b34da6a3ce929d0e0e4736")
    expect(panel).to_contain_text("5577006791947779410")  # more than a number of JavaScript holds
    last_answer(page).locator(".message__took").click()
    expect(panel).to_be_hidden()


def test_the_keyboard_opens_walks_and_closes(chat: ScriptedChat, page: Page) -> None:
    answered(chat, page)
    button = last_answer(page).get_by_role("button", name="How this answer came about")
    button.focus()
    page.keyboard.press("Enter")
    spans = page.locator(f"{PANEL} .span")
    expect(page.get_by_role("heading", name="How this answer came about")).to_be_focused()
    spans.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(spans.nth(2)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(PANEL)).to_be_hidden()
    expect(button).to_be_focused()


def test_an_answer_that_was_begun_more_than_once_says_so(chat: ScriptedChat, page: Page) -> None:
    answered(chat, page)
    page.route(
        re.compile(r"/api/messages/[^/]+/trace$"),
        lambda route: route.fulfill(json=TRACE | {"attempts": 2}),
    )
    last_answer(page).locator(".message__took").click()
    expect(page.locator(f"{PANEL} .facts")).to_contain_text("2 times")


def test_a_trace_that_cannot_be_read_says_so(chat: ScriptedChat, page: Page) -> None:
    answered(chat, page)
    error = {"error": {"message": "There is no such answer.", "code": "not_found"}}
    page.route(
        re.compile(r"/api/messages/[^/]+/trace$"),
        lambda route: route.fulfill(status=404, json=error),
    )
    last_answer(page).locator(".message__took").click()
    expect(page.locator(f"{PANEL} [role=alert]")).to_have_text("There is no such answer.")


def test_tokens_are_shaded_in_place_and_by_keyboard(chat: ScriptedChat, page: Page) -> None:
    chat.tokens = tokens_of("Memory is cut into blocks.")
    answered(chat, page)
    last_answer(page).locator(".message__took").click()
    toggle = page.get_by_role("button", name="Token by token")
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "true")
    tokens = last_answer(page).locator(".tokens__text .token")
    expect(tokens).to_have_count(6)
    expect(last_answer(page).locator(".message__parts")).to_be_hidden()
    tokens.nth(1).hover()
    card = page.locator(".token-card")
    expect(card).to_contain_text("62%")
    tokens.first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(tokens.nth(3)).to_be_focused()
    expect(card).to_contain_text("30%")
    steps = [tokens.nth(i).get_attribute("data-step") for i in range(6)]
    assert steps == ["0", "0", "0", "1", "0", "2"], "weights of the line, not colours alone"
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.get_by_text("As a list").click()
    rows = last_answer(page).locator(".tokens__list tbody tr")
    expect(rows).to_have_count(6)
    expect(rows.nth(3)).to_contain_text("1.7 bits")
    toggle.click()
    expect(last_answer(page).locator(".message__parts")).to_be_visible()
    expect(tokens).to_have_count(0)


def test_a_real_answer_opens_and_still_does_after_a_reload(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/")
    ask(page, "What is 17 * 23?")
    for _ in range(2):
        expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=60_000)
        last_answer(page).locator(".message__took").click()
        names = page.locator(f"{PANEL} .span__name")
        expect(names.last).to_have_text("Saved")
        assert "Calculator" in names.all_inner_texts()
        assert names.all_inner_texts().count("Written") == 2
        page.get_by_role("button", name="Replay").click()
        expect(page.locator("[data-outcome=same]")).to_contain_text("Same. All", timeout=30_000)
        page.get_by_role("button", name="Token by token").click()
        expect(last_answer(page).locator(".tokens__turn")).to_contain_text("Turn 2")
        assert last_answer(page).locator(".tokens__text .token").count() > 10
        page.reload()
        page.locator(INPUT).wait_for()


def test_choosing_another_token_branches_there(reader: BrowserContext, page: Page) -> None:
    page.goto("/")
    ask(page, "Who are you?")
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=60_000)
    text = last_answer(page).locator(".message__parts").inner_text()
    last_answer(page).locator(".message__took").click()
    page.get_by_role("button", name="Token by token").click()
    token = last_answer(page).locator(".tokens__text .token").nth(2)
    token.focus()
    page.keyboard.press("Enter")
    choice = page.locator(".token-card button").first
    expect(choice).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("side-panel")).to_be_hidden(timeout=20_000)
    expect(last_answer(page).locator(".message__parts")).not_to_have_text(text, timeout=30_000)
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=60_000)
    expect(last_answer(page).locator(".tokens")).to_have_count(0)
