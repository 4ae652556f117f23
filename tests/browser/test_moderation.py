"""What people see of policies: why an answer ended, a question that is sent all the same, an appeal."""

from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import own_page
from tests.chat.policies import PHRASE, plant_rule, set_policy
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, events, texts

_numbers = count(1)


@pytest.fixture(scope="module")
def site(make_site: SiteMaker) -> Iterator[Site]:
    with UpstreamServer() as server:
        server.answers = [events(*texts("A quiet day. ", f"Then the {PHRASE} came. ", "The end."))]
        far = f"far={server.url}"
        with make_site(
            VITRINE_MODELS=far, VITRINE_DEFAULT_MODEL="far", VITRINE_MODERATION="builtin"
        ) as site:
            site.set_up().close()
            plant_rule(site)
            yield site


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Page]:
    with own_page(site, browser, f"reader{next(_numbers)}") as page:
        yield page


def ask(page: Page, text: str) -> None:
    page.goto("/")
    page.get_by_role("textbox").first.fill(text)
    page.keyboard.press("Enter")


def test_an_answer_ends_where_it_is_stopped_and_that_can_be_appealed(
    site: Site, page: Page
) -> None:
    set_policy(site, {"output": {"illicit": {"block": 0.9}}})
    ask(page, "Tell me a story.")
    answer = page.locator(".message--assistant, article.message").last
    expect(answer).to_contain_text("A quiet day.")
    expect(answer).to_contain_text("the policy “House rules” does not allow help with crime")
    assert PHRASE not in page.content()
    page.reload()
    expect(page.get_by_text("A quiet day.")).to_be_visible()
    assert PHRASE not in page.content()
    page.get_by_role("link", name="Ask for a review").click()
    page.locator("summary").click()
    page.get_by_role("textbox", name="Why was it wrong?").fill("It is a bird.")
    page.get_by_role("dialog").get_by_role("button", name="Send").click()
    expect(page.get_by_text("Somebody will look at it.")).to_be_visible()
    expect(page.get_by_text("Waits for a person")).to_be_visible()
    assert PHRASE not in page.content()


def test_a_question_is_sent_all_the_same(site: Site, page: Page) -> None:
    set_policy(site, {"input": {"illicit": {"ask": 0.9}}})
    ask(page, f"Draw a {PHRASE}.")
    expect(page.get_by_role("log").get_by_text("Send it all the same?")).to_be_visible()
    page.get_by_role("button", name="Send all the same").click()
    expect(page.get_by_role("log").get_by_text("The end.")).to_be_visible()
