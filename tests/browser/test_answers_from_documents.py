"""Questions answered from documents on the chat page: picked, cited, looked into, asked again."""

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.chat.test_answers_from_documents import HANDBOOK, PORT
from tests.chat.test_documents import a_collection, ready, upload
from tests.chat.test_limits import a_tier, place
from tests.sites import Site, email_of

ANSWER_TIMEOUT_MS = 60_000
QUESTION = "When does the office open?"
ANSWER = "The office opens at 8 in the morning [1]."
_numbers = count(1)


@pytest.fixture
def owner(vitrine_server: Site) -> Iterator[httpx2.Client]:
    """Somebody new, with a collection of two documents."""
    vitrine_server.set_up().close()
    with closing(vitrine_server.sign_up(f"librarian{next(_numbers)}")) as visitor:
        visitor.get("/")
        visitor.headers["X-CSRFToken"] = visitor.cookies["vitrine_csrf"]
        collection = a_collection(visitor, "Company notes")
        for name, text in (("handbook.md", HANDBOOK), ("port.txt", PORT)):
            ready(visitor, str(upload(visitor, collection, text, name).json()["id"]))
        yield visitor


@pytest.fixture
def own(owner: httpx2.Client, vitrine_server: Site, context: BrowserContext, page: Page) -> Page:
    context.add_cookies(cookies_of(owner, vitrine_server.url))
    open_chat(page)
    return page


def open_chat(page: Page) -> None:
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")


def pick(page: Page, name: str) -> None:
    page.locator(INPUT).press_sequentially(f"#{name}")
    expect(page.get_by_role("option").first).to_contain_text(name)
    page.locator(INPUT).press("Enter")
    expect(chips(page).last).to_contain_text(name)


def chips(page: Page) -> Locator:
    return page.locator(".picked__chip")


def answered(page: Page, text: str = ANSWER) -> Locator:
    answer = last_answer(page)
    expect(answer).to_have_attribute("data-status", "complete", timeout=ANSWER_TIMEOUT_MS)
    expect(answer.locator(".prose")).to_have_text(text, timeout=ANSWER_TIMEOUT_MS)
    return answer


def expect_card(page: Page, citation: Locator, text: str) -> None:
    """What it shows once nothing moves any more: a card goes with a link that moves away, and a pointer
    that lies still does not ask again."""
    card = page.locator(".source-card")
    for _ in range(9):
        citation.hover()
        with suppress(AssertionError):
            expect(card.get_by_text(text)).to_be_visible(timeout=2_000)
            return
        page.mouse.move(0, 0)
    citation.hover()
    expect(card.get_by_text(text)).to_be_visible()


def test_an_answer_cites_what_was_picked_and_shows_the_passage(own: Page) -> None:
    pick(own, "Company")
    expect(own.locator(INPUT)).to_have_value("")
    expect_no_faults(own)
    ask(own, QUESTION)
    answer = answered(own)
    expect(own.locator(".message--user .source")).to_have_text("Company notes")
    expect(chips(own)).to_have_text(["Company notes"])  # for the next question of this chat
    citation = answer.locator("a.citation")
    expect(citation).to_have_text("[1]")
    expect(citation).to_have_attribute("aria-label", "Source 1: handbook.md")
    href = citation.get_attribute("href") or ""
    assert re.fullmatch(r"/documents/[0-9a-f-]{36}\?version=[0-9a-f-]{36}&start=\d+&end=\d+", href)
    expect(answer.locator(".sources .source").first).to_contain_text("handbook.md")

    citation.focus()
    card = own.locator(".source-card")
    expect(card).to_contain_text("opens at 8 in the morning")
    expect(card).to_contain_text("handbook.md")
    expect_no_faults(own)
    own.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(citation).to_be_focused()
    citation.hover()
    expect(card).to_contain_text("opens at 8 in the morning")
    own.mouse.move(0, 0)
    own.locator(INPUT).focus()
    expect(card).to_be_hidden()

    own.reload()
    answered(own)
    expect(last_answer(own).locator("a.citation")).to_have_attribute("href", href)
    expect(chips(own)).to_have_text(["Company notes"])
    expect_no_sideways_scrolling(own)


def test_a_message_is_copied_as_it_was_written(own: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    pick(own, "Company")
    ask(own, QUESTION)
    answer = answered(own)
    answer.locator("[data-copy]").click()
    assert own.evaluate("navigator.clipboard.readText()") == ANSWER
    own.evaluate("getSelection().selectAllChildren(document.querySelector('.prose'))")
    assert own.evaluate("String(getSelection())").strip() == ANSWER


def test_the_debugger_asks_again_without_a_passage(own: Page) -> None:
    pick(own, "Company")
    ask(own, QUESTION)
    answered(own).locator(".message__took").click()
    panel = own.locator("side-panel")
    rows = panel.locator(".passage-row")
    expect(rows).to_have_count(2)
    expect(panel.locator(".retrieval__query")).to_contain_text(QUESTION)
    expect(rows.first).to_contain_text("handbook.md")
    expect(rows.first.locator(".source__number")).to_have_text("1")
    expect(rows.last).to_contain_text("does not fit the question")
    rows.last.get_by_text("What it says").click()
    expect(rows.last).to_contain_text("Otto Brandt")
    panel.get_by_text("What the model read of it").click()
    expect(panel.locator(".retrieval__prompt")).to_contain_text("[1] handbook.md")
    expect(panel.locator(".span__name", has_text="Looked up")).to_be_visible()
    expect_no_faults(own)
    rows.first.get_by_role("button", name="Ask again without this passage").click()
    expect(last_answer(own).locator(".prose")).to_have_text(
        "That is not in the documents.", timeout=ANSWER_TIMEOUT_MS
    )
    answer = answered(own, "That is not in the documents.")
    expect(answer.locator(".sources")).to_have_text("Nothing in the documents fits this question.")
    answer.locator(".message__took").click()
    expect(panel.locator(".passage-row").first).to_contain_text("not wanted")


def test_a_file_is_attached_read_and_answered_from(own: Page, tmp_path: Path) -> None:
    file = tmp_path / "harbour.txt"
    file.write_text(PORT)
    own.fill(INPUT, "Who built the crane?")
    with own.expect_file_chooser() as chooser:
        own.get_by_role("button", name="Attach files").click()
    chooser.value.set_files(file)
    expect(chips(own)).to_contain_text("harbour.txt")
    own.locator(INPUT).press("Enter")  # it waits for the file, if that is not read yet
    answer = last_answer(own)
    expect(answer).to_have_attribute("data-status", "complete", timeout=ANSWER_TIMEOUT_MS)
    expect(answer.locator(".prose")).to_contain_text("Otto Brandt")
    expect(answer.locator("a.citation").first).to_be_visible()
    expect(own.locator(".message--user .source")).to_have_text("harbour.txt")
    expect(chips(own)).to_have_count(0)  # for one message


def test_a_file_that_cannot_be_read_holds_the_message_until_it_is_removed(
    own: Page, tmp_path: Path
) -> None:
    file = tmp_path / "broken.pdf"
    file.write_bytes(b"%PDF-1.7 of which nothing follows")
    own.fill(INPUT, "What does it say?")
    own.locator(".composer__files").set_input_files(file)
    expect(chips(own)).to_have_attribute("data-state", "failed", timeout=60_000)
    own.locator(INPUT).press("Enter")
    expect(own.locator("#composer-hint")).to_contain_text("A file could not be read.")
    expect(own.locator(INPUT)).to_have_value("What does it say?")
    expect(own.locator(".message--user")).to_have_count(0)
    expect_no_faults(own)
    expect_no_sideways_scrolling(own)
    own.get_by_role("button", name="Remove broken.pdf").click()
    expect(own.locator("#composer-hint")).not_to_contain_text("could not be read")
    expect(own.locator(INPUT)).to_be_focused()


def test_what_is_picked_goes_by_the_keyboard(own: Page) -> None:
    pick(own, "Company")
    pick(own, "port")
    expect(chips(own)).to_have_count(2)
    own.locator(INPUT).press("Backspace")
    expect(chips(own)).to_have_text(["Company notes"])
    own.locator(INPUT).press_sequentially("#zzz")
    expect(own.get_by_role("option")).to_have_count(0)


def test_a_temporary_chat_is_answered_from_documents_and_kept_with_its_sources(own: Page) -> None:
    own.click("[data-temporary]")
    expect(own.locator(".composer__attach")).to_be_hidden()  # what is brought would stay
    pick(own, "Company")
    ask(own, QUESTION)
    answer = answered(own)
    expect(own.locator(".message--user .source")).to_have_text("Company notes")
    answer.locator("a.citation").hover()
    expect(own.locator(".source-card")).to_contain_text("opens at 8 in the morning")
    own.mouse.move(0, 0)
    ask(own, "Where is lunch served?")
    expect(last_answer(own)).to_have_attribute("data-status", "complete", timeout=ANSWER_TIMEOUT_MS)
    expect(last_answer(own).locator("a.citation").first).to_be_visible()
    expect(last_answer(own).locator(".message__took")).to_be_disabled()
    own.click("[data-keep]")
    own.wait_for_url("**/c/**")
    own.reload()
    own.locator("chat-composer:defined").wait_for()  # then it hears of what is pointed at
    expect(own.locator(".message--user .source")).to_have_text(["Company notes"] * 2)
    first = own.locator(".message--assistant").first
    expect_card(own, first.locator("a.citation"), "opens at 8 in the morning")


def test_a_question_that_is_edited_keeps_its_sources(own: Page) -> None:
    pick(own, "Company")
    ask(own, "What does the director earn?")
    expect(last_answer(own).locator(".sources")).to_have_text(
        "Nothing in the documents fits this question.", timeout=ANSWER_TIMEOUT_MS
    )
    own.locator(".message--user [data-act=edit]").click()
    own.locator(".editor__input").fill(QUESTION)
    own.keyboard.press("Control+Enter")
    answered(own)
    expect(own.locator(".message--user .source")).to_have_text("Company notes")


def test_what_is_picked_survives_a_reload_until_it_is_sent(own: Page) -> None:
    pick(own, "Company")
    pick(own, "port")
    own.reload()
    expect(chips(own)).to_have_text(["Company notes", "port.txt"])
    ask(own, QUESTION)
    answered(own, "The office opens at 8 in the morning [2].")  # behind what was picked by name
    expect(own.locator(".message--user .source")).to_have_text(["Company notes", "port.txt"])
    own.reload()
    expect(chips(own)).to_have_text(["Company notes"])  # documents are for one message
    own.get_by_role("button", name="Remove Company notes").click()
    own.reload()
    expect(own.locator(INPUT)).to_be_visible()
    expect(own.locator(".message--assistant")).to_have_count(1)
    expect(chips(own)).to_have_count(0)


def test_a_plan_without_files_has_no_paperclip(
    own: Page, vitrine_server: Site, browser: Browser
) -> None:
    expect(own.locator(".composer__attach")).to_be_visible()
    with closing(vitrine_server.sign_up("clipless")) as visitor:
        place(vitrine_server, email_of("clipless"), a_tier(vitrine_server, features=["tools"]))
        with browser.new_context(base_url=vitrine_server.url) as context:
            context.add_cookies(cookies_of(visitor, vitrine_server.url))
            page = context.new_page()
            open_chat(page)
            page.locator(INPUT).press_sequentially("#")  # what others share may be picked
            expect(page.locator("#source-menu")).to_be_visible()
            expect(page.locator(".composer__attach")).to_have_count(0)
            expect_no_faults(page)
            expect_no_sideways_scrolling(page)
