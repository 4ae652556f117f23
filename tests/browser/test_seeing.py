"""A picture in a question to a model that sees: it is sent without waiting, and seen by both."""

import json
from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import own_page
from tests.images import png
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, events, texts

_numbers = count(1)
CHIP = ".picked__chip"


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamServer]:
    with UpstreamServer() as server:
        server.answers = [events(*texts("A red ", "square."))]
        yield server


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"seeing={server.url}?images=on,blind={server.url}"
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="seeing") as site:
        site.set_up().close()
        yield site


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Page]:
    with own_page(site, browser, f"reader{next(_numbers)}") as page:
        yield page


def attach(page: Page) -> None:
    file = {"name": "square.png", "mimeType": "image/png", "buffer": png("red", (60, 40))}
    page.locator(".composer__files").set_input_files(file)  # type: ignore[arg-type]


def choose(page: Page, model: str) -> None:
    page.locator("model-picker button").first.click()
    page.locator(f"[data-model={model}]").click()


def test_it_is_sent_unread_and_stands_in_the_question(page: Page, server: UpstreamServer) -> None:
    page.goto("/")
    attach(page)
    expect(page.locator(CHIP)).to_have_attribute("data-state", "ready")  # there is no text in it
    page.get_by_role("textbox").first.fill("What is this?")
    page.keyboard.press("Enter")
    expect(page.locator("article.message").last).to_contain_text("A red square.")
    expect(page.locator("article.message img[alt='square.png']")).to_be_visible()
    questions = [m for one in server.asked for m in one.body["messages"] if m["role"] == "user"]
    assert "data:image/jpeg;base64," in json.dumps(questions[0])
    page.reload()
    expect(page.locator("article.message img[alt='square.png']")).to_be_visible()


def test_it_waits_for_what_can_be_read_where_the_model_does_not_see(page: Page) -> None:
    page.goto("/")
    choose(page, "blind")
    attach(page)
    expect(page.locator(CHIP)).to_have_attribute("data-state", "failed", timeout=30_000)
    page.locator("model-picker button").first.click()
    expect(page.locator("[data-model=seeing]")).to_contain_text("Sees pictures")
    expect(page.locator("[data-model=blind]")).not_to_contain_text("Sees pictures")
    page.locator("[data-model=seeing]").click()
    expect(page.locator(CHIP)).to_have_attribute("data-state", "ready")
    choose(page, "blind")
    expect(page.locator(CHIP)).to_have_attribute("data-state", "failed")
