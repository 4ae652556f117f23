"""Pages of a real site in Chromium, signed in, watched for what must never happen."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page, Request, expect

from tests.browser.gate import Gate
from tests.browser.pages import cookies_of
from tests.browser.scripted import ScriptedChat
from tests.sites import Site
from tests.upstream_server import UpstreamServer

# Five seconds, Playwright's own, are not enough for two cores that also run a model.
expect.set_options(timeout=20_000)

WATCH_POLICY = """
  window.__violations = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    window.__violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
  });
"""


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamServer]:
    """Another company's, whose models a site of the test's may have."""
    with UpstreamServer() as server:
        yield server


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any], base_url: str) -> dict[str, Any]:
    """A service worker would answer in the place of what a test routes; test_pwa.py has its own.

    The address is named, for the plugin's own arguments are made once: where a test of another folder
    comes first, they are without it.
    """
    return {**browser_context_args, "base_url": base_url, "service_workers": "block"}


@pytest.fixture(scope="session")
def base_url(vitrine_server: Site) -> str:
    return vitrine_server.url


@pytest.fixture
def gate(base_url: str) -> Iterator[Gate]:
    gate = Gate(base_url)
    yield gate
    gate.close()


@pytest.fixture(scope="session")
def reader_cookies(vitrine_server: Site) -> list[Any]:
    """The session of somebody who has signed up."""
    vitrine_server.set_up()
    visitor = vitrine_server.sign_up("Reader")
    return cookies_of(visitor, vitrine_server.url)


@pytest.fixture
def reader(context: BrowserContext, reader_cookies: list[Any]) -> BrowserContext:
    """A browser in which the reader is signed in."""
    context.add_cookies(reader_cookies)
    return context


@pytest.fixture
def page(context: BrowserContext, base_url: str) -> Iterator[Page]:
    """A page that asks nobody else for anything, runs no foreign script and breaks no policy."""
    page = context.new_page()
    page.add_init_script(WATCH_POLICY)
    strangers: list[str] = []
    troubles: list[str] = []

    def watch(request: Request) -> None:
        if urlsplit(request.url).netloc not in (urlsplit(base_url).netloc, ""):
            strangers.append(request.url)

    def listen(message: ConsoleMessage) -> None:
        # What a sandbox refuses its own content, it is there to refuse. What the page's own policy does
        # is among its violations.
        is_boxed = any(part in message.location["url"] for part in ("/sandbox/", "/vendor/mermaid"))
        if is_boxed or "Content Security Policy" in message.text or "sandboxed" in message.text:
            return
        if message.type == "error" and "Failed to load resource" not in message.text:
            troubles.append(message.text)

    def fail(error: Error) -> None:
        if "/sandbox/" not in (
            error.stack or ""
        ):  # nor what a page that an answer wrote does wrong
            troubles.append(f"{error} {error.stack}")

    page.on("request", watch)
    page.on("console", listen)
    page.on("pageerror", fail)
    yield page
    if not page.is_closed():
        assert page.evaluate("window.__violations") == []
        assert page.evaluate("window.__xss") is None
    assert strangers == []
    assert troubles == []


@pytest.fixture
def chat(reader: BrowserContext, page: Page) -> ScriptedChat:
    """The chat page, with a script in place of the server's side of the socket."""
    chat = ScriptedChat(page)
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    return chat
