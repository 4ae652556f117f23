"""The first load stays light: what is heavy waits until it is needed."""

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.library import add_chats
from tests.browser.pages import INPUT, ask, last_answer
from tests.browser.scripted import ScriptedChat
from tests.sites import Site, email_of

# Compressed, as promised in docs: of a new chat, and of one with answers.
MAX_SCRIPT_BYTES = 80_000
MAX_FILES = 25
MAX_SCRIPT_BYTES_WITH_ANSWERS = 160_000
HEAVY = ("highlight", "katex", "mermaid", "sandbox")
SCRIPTS = """
  performance.getEntriesByType("resource")
    .filter((entry) => entry.name.includes(".js"))
    .map((entry) => [entry.name, entry.encodedBodySize])
"""


def _scripts_of(page: Page, path: str) -> dict[str, int]:
    page.goto(path)
    page.locator("status-bar:defined").wait_for(state="attached")
    scripts = dict(page.evaluate(SCRIPTS))
    assert not any(heavy in name for name in scripts for heavy in HEAVY)
    assert page.locator("iframe").count() == 0
    return scripts


def test_the_first_load_of_a_new_chat(reader: BrowserContext, page: Page) -> None:
    scripts = _scripts_of(page, "/")
    assert sum(scripts.values()) < MAX_SCRIPT_BYTES
    assert not any("markdown" in name for name in scripts)
    assert page.evaluate("performance.getEntriesByType('resource').length") <= MAX_FILES


def test_the_first_load_of_a_chat_with_answers(
    vitrine_server: Site, reader: BrowserContext, page: Page
) -> None:
    add_chats(vitrine_server, email_of("Reader"), {"Weighed": ["What?", "**This** one."]})
    page.goto("/")
    address = page.get_by_role("link", name="Weighed").first.get_attribute("href")
    assert address
    scripts = _scripts_of(page, address)
    assert last_answer(page).locator("strong").inner_text() == "This"  # as soon as the page works
    assert sum(scripts.values()) < MAX_SCRIPT_BYTES_WITH_ANSWERS


def test_who_begins_to_write_brings_what_draws_the_answer(chat: ScriptedChat, page: Page) -> None:
    with page.expect_response(re.compile(r"/vendor/markdown-it\.")):
        page.type(INPUT, "G")
    ask(page, "Good evening")
    chat.write("r1", "**Good** evening.")
    expect(last_answer(page).locator("strong")).to_have_text("Good")


def test_an_answer_is_plain_text_until_it_can_be_drawn(chat: ScriptedChat, page: Page) -> None:
    """And says so where that cannot be loaded; once it can be, it is drawn."""
    unreachable = re.compile(r"/js/prose\.")
    page.route(unreachable, lambda route: route.abort())
    ask(page, "Good evening")
    chat.write("r1", "**Good** evening,\n\nfriend")
    expect(last_answer(page).locator(".message__parts")).to_contain_text("**Good** evening,")
    toast = page.locator(".toast", has_text="shown as plain text")
    expect(toast).to_have_count(1)
    chat.write("r1", ".", offset=25)
    expect(last_answer(page)).to_contain_text("friend.")
    expect(toast).to_have_count(1)
    expect(page.locator(INPUT)).to_be_focused()
    page.unroute(unreachable)
    chat.finish("r1")
    expect(last_answer(page).locator("strong")).to_have_text("Good")
    expect(last_answer(page).locator(".message__parts p")).to_have_count(2)


def test_the_glass_that_cannot_be_loaded_says_so(chat: ScriptedChat, page: Page) -> None:
    unreachable = re.compile(r"/js/glass\.")
    page.route(unreachable, lambda route: route.abort())
    ask(page, "Good evening")
    chat.write("r1", "Good evening.")
    chat.finish("r1")
    took = last_answer(page).locator(".message__took")
    took.click()
    expect(page.locator(".toast", has_text="The server cannot be reached.")).to_be_visible()
    expect(took).to_be_focused()
    page.unroute(unreachable)
    took.click()
    expect(page.locator("#side-title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(took).to_be_focused()


def test_the_highlighter_comes_with_the_first_code_block(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Code")
    chat.write("r1", "```python\nreturn 1\n```\n")
    page.locator(".hljs-keyword").wait_for()
    assert any("highlight" in name for name, _ in page.evaluate(SCRIPTS))


def test_formulas_and_diagrams_bring_their_libraries_when_they_come(
    chat: ScriptedChat, page: Page
) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    ask(page, "Formula")
    chat.write("r1", "Prices of $5 and $6 need nothing.")
    page.wait_for_timeout(200)
    assert not any("katex" in url for url in requested)
    chat.write("r1", " A formula $x$ does.", offset=33)
    page.locator(".katex").wait_for()
    assert any("katex" in url and ".woff2" in url for url in requested)
    assert not any("mermaid" in url for url in requested)
