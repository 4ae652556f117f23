"""The first load stays light: what is heavy waits until it is needed."""

from playwright.sync_api import BrowserContext, Page

from tests.browser.pages import ask
from tests.browser.scripted import ScriptedChat

MAX_SCRIPT_BYTES = 200_000  # compressed, as promised in docs
SCRIPTS = """
  performance.getEntriesByType("resource")
    .filter((entry) => entry.name.includes(".js"))
    .map((entry) => [entry.name, entry.encodedBodySize])
"""


def test_the_first_load_of_the_chat(reader: BrowserContext, page: Page) -> None:
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    scripts = page.evaluate(SCRIPTS)
    assert sum(size for _, size in scripts) < MAX_SCRIPT_BYTES
    assert not any("highlight" in name for name, _ in scripts)


def test_the_highlighter_comes_with_the_first_code_block(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Code")
    chat.write("r1", "```python\nreturn 1\n```\n")
    page.locator(".hljs-keyword").wait_for()
    assert any("highlight" in name for name, _ in page.evaluate(SCRIPTS))
