"""The main job with nothing played: set-up link, browser, socket, log, engine and built-in model."""

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.pages import answer_text, ask, cookies_of, last_answer
from tests.chat.conftest import chat_environment
from tests.sites import PASSWORD, Site, SiteMaker, wait_until

ANSWER_TIMEOUT_MS = 120_000  # a long answer, while other tests take most of the processor
_numbers = count(1)
# On a quick machine the built-in model writes its longest poem between two frames.
LONG = (
    "the quiet river runs behind the old mill and the miller counts his sacks of flour while the geese"
    " walk home in the evening light and the baker carries warm bread across the narrow bridge to the"
    " market where the farmers sell green apples and fresh eggs and honey from the hills until the bells"
    " ring and the children run back to the houses under the tall trees beside the long stone wall"
)
WATCH_STREAM = """
  window.__lengths = [];
  new MutationObserver(() => {
    const parts = [...document.querySelectorAll(".message--assistant .message__parts")].at(-1);
    const length = parts ? parts.innerText.trim().length : 0;
    if (length && length !== window.__lengths.at(-1)) window.__lengths.push(length);
  }).observe(document, {childList: true, subtree: true, characterData: true});
"""


@pytest.fixture(scope="module")
def new_site(make_site: SiteMaker) -> Iterator[Site]:
    """A site nobody has opened yet, with the built-in model."""
    with make_site(VITRINE_PRELOAD="true") as site:
        yield site


@pytest.fixture(scope="module")
def slow_site(make_site: SiteMaker, small_models: str) -> Iterator[Site]:
    """A site whose answers take seconds, so that things can happen in the middle of one."""
    with make_site(**chat_environment(small_models)) as site:
        site.set_up().close()
        yield site


@pytest.fixture
def slow_page(slow_site: Site, context: BrowserContext) -> Page:
    """The chat page of the slow site, signed in."""
    with closing(slow_site.sign_up(f"reader{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, slow_site.url))
    page = context.new_page()
    page.goto(slow_site.url)
    return page


def finished(page: Page) -> None:
    expect(last_answer(page)).to_have_attribute("aria-busy", "false", timeout=ANSWER_TIMEOUT_MS)


def test_from_the_set_up_link_to_streamed_answers(browser: Browser, new_site: Site) -> None:
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.add_init_script(WATCH_STREAM)
        assert new_site.setup_url
        page.goto(new_site.setup_url)
        page.fill("input[name=name]", "Ada")
        page.fill("input[name=email]", "ada@example.org")
        page.fill("input[name=password]", PASSWORD)
        page.click("main button")
        page.wait_for_url(f"{new_site.url}/")

        ask(page, "What is 17 * 23?")
        finished(page)
        expect(last_answer(page).locator("summary")).to_have_text("Calculator · 17 * 23 → 391")
        assert re.search(r"\b391\b", answer_text(page).split("391", 1)[1]), "said in a sentence too"

        page.goto(f"{new_site.url}/")
        page.evaluate("window.__lengths = []")
        ask(page, f"Repeat after me: {LONG}")
        finished(page)
        lengths = page.evaluate("window.__lengths")
        assert lengths == sorted(lengths), "text only grows"
        assert len(lengths) > 2, "it came in pieces"

        page.goto(f"{new_site.url}/")
        ask(page, "My name is Ada. What is my name?")
        finished(page)
        expect(last_answer(page)).to_contain_text("Your name is Ada.")

        url = page.url
        page.reload()
        expect(last_answer(page)).to_contain_text("Your name is Ada.")
        assert page.url == url
        expect(page.locator(".chat-link")).to_have_count(3)
        # The model finds titles for all, in place of their first words.
        untitled = page.locator(".chat-link a", has_text=re.compile("What is"))
        expect(untitled).to_have_count(0, timeout=ANSWER_TIMEOUT_MS)


def test_a_reload_in_the_middle_ends_with_what_was_saved(slow_page: Page) -> None:
    ask(slow_page, "A long one, please")
    slow_page.wait_for_url("**/c/*")
    wait_until(lambda: len(answer_text(slow_page)) > 20, timeout_s=90, what="text")
    slow_page.reload()
    expect(last_answer(slow_page)).to_have_attribute("aria-busy", "true")
    finished(slow_page)
    followed = answer_text(slow_page)
    slow_page.reload()
    assert answer_text(slow_page) == followed != ""


def test_a_stopped_answer_is_saved_as_it_was_seen(slow_page: Page) -> None:
    ask(slow_page, "Another long one")
    wait_until(lambda: len(answer_text(slow_page)) > 20, timeout_s=90, what="text")
    slow_page.keyboard.press("Escape")
    expect(last_answer(slow_page)).to_contain_text("You stopped this answer.")
    seen = answer_text(slow_page)
    slow_page.reload()
    expect(last_answer(slow_page)).to_contain_text("You stopped this answer.")
    assert answer_text(slow_page) == seen


def test_two_tabs_show_the_same_answer(slow_page: Page) -> None:
    ask(slow_page, "For both tabs")
    slow_page.wait_for_url("**/c/*")
    other = slow_page.context.new_page()
    other.goto(slow_page.url)
    expect(last_answer(other)).to_have_attribute("aria-busy", "true")
    finished(slow_page)
    finished(other)
    assert answer_text(other) == answer_text(slow_page) != ""


def test_an_answer_goes_on_when_the_web_process_is_killed(slow_site: Site, slow_page: Page) -> None:
    ask(slow_page, "Survive this")
    wait_until(lambda: len(answer_text(slow_page)) > 20, timeout_s=90, what="text")
    slow_site.child("web").kill()
    finished(slow_page)
    followed = answer_text(slow_page)
    slow_page.reload()
    assert answer_text(slow_page) == followed != ""
    expect(last_answer(slow_page)).not_to_contain_text("failed")
    expect(last_answer(slow_page)).to_contain_text("resumed")


def test_an_answer_is_whole_after_a_while_without_a_network(slow_page: Page) -> None:
    ask(slow_page, "Go on without me")
    slow_page.wait_for_url("**/c/*")
    wait_until(lambda: len(answer_text(slow_page)) > 20, timeout_s=90, what="text")
    slow_page.context.set_offline(True)
    expect(slow_page.locator("status-bar")).to_contain_text(
        "No connection", timeout=ANSWER_TIMEOUT_MS
    )
    before = answer_text(slow_page)
    slow_page.context.set_offline(False)
    finished(slow_page)
    followed = answer_text(slow_page)
    # Marks of Markdown that are not closed yet may be shown otherwise when the text has its end.
    assert re.sub(r"[*_~`]", "", followed).startswith(re.sub(r"[*_~`]", "", before))
    slow_page.reload()
    assert answer_text(slow_page) == followed != ""
