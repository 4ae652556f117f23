"""What a person does on the chat page, in few words."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx2
from playwright.sync_api import Browser, Locator, Page, expect

from tests.sites import Site, wait_until

INPUT = "#composer-input"
DRAWING = 'import("/static/js/prose.js").then(() => undefined, () => undefined)'


def cookies_of(visitor: httpx2.Client, url: str) -> list[Any]:
    """A visitor's session, as `BrowserContext.add_cookies` wants it."""
    return [{"name": c.name, "value": c.value, "url": url} for c in visitor.cookies.jar]


@contextmanager
def own_page(site: Site, browser: Browser, name: str) -> Iterator[Page]:
    """A page of somebody who has just signed up."""
    with closing(site.sign_up(name)) as visitor, browser.new_context(base_url=site.url) as context:
        context.add_cookies(cookies_of(visitor, site.url))
        yield context.new_page()


def ask(page: Page, text: str) -> None:
    """Type into the composer and press Enter; returns when the message is on the screen.

    What draws answers comes with the first letter. Whoever types is slower than that, so it is
    waited for.
    """
    count = page.locator(".message--user").count()
    page.locator("chat-composer:defined").wait_for()
    page.fill(INPUT, text)
    page.evaluate(DRAWING)
    page.press(INPUT, "Enter")
    page.locator(".message--user").nth(count).wait_for()


def last_answer(page: Page) -> Locator:
    return page.locator(".message--assistant").last


def wait_for(page: Page, expression: str) -> None:
    """Until an expression is true, or its promise. `wait_for_function` asks by eval, which the
    page's policy forbids from the second time on."""
    wait_until(lambda: page.evaluate(expression), timeout_s=60, what=expression)


def answer_text(page: Page) -> str:
    """What an answer says once it is drawn: its markdown stands as plain words until then."""
    parts = last_answer(page).locator(".message__parts")
    expect(parts.locator("p.message__text")).to_have_count(0)
    return parts.inner_text()


def distance_to_end(page: Page) -> float:
    return float(
        page.evaluate(
            "(box => box.scrollHeight - box.scrollTop - box.clientHeight)"
            "(document.querySelector('#scroller'))"
        )
    )
