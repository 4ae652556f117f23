"""The first load stays light: what is heavy waits until it is needed."""

from playwright.sync_api import BrowserContext, Page

from tests.browser.pages import ask
from tests.browser.scripted import ScriptedChat

MAX_SCRIPT_BYTES = 200_000  # compressed, as promised in docs
HEAVY = ("highlight", "katex", "mermaid", "sandbox")
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
    assert not any(heavy in name for name, _ in scripts for heavy in HEAVY)
    assert page.locator("iframe").count() == 0


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
