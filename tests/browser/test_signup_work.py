"""Sign-up in a browser that has to do the sum of a new installation."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import PASSWORD
from tests.sites import Site, SiteMaker


@pytest.fixture(scope="module")
def site(make_site: SiteMaker) -> Iterator[Site]:
    with make_site(VITRINE_SIGNUP_WORK_BITS="16") as site:
        site.set_up().close()
        yield site


def fill(page: Page, email: str) -> None:
    page.goto("/accounts/signup/")
    for name, value in {"name": "Dora", "email": email, "password1": PASSWORD}.items():
        page.fill(f"[name={name}]", value)


@pytest.mark.parametrize("does_wait", [True, False])
def test_the_form_waits_for_the_sum(site: Site, browser: Browser, does_wait: bool) -> None:
    context = browser.new_context(base_url=site.url)
    page = context.new_page()
    fill(page, f"dora{does_wait}@example.org")
    expect(page.get_by_label("Leave this empty")).to_be_hidden()
    if does_wait:
        expect(page.locator("[name=nonce]")).not_to_have_value("")
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url("**/")
    expect(page.get_by_role("textbox").first).to_be_visible()
    context.close()


def test_without_scripts_people_are_told_what_is_needed(site: Site, browser: Browser) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    page = context.new_page()
    fill(page, "erik@example.org")
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_text("which needs JavaScript. Please try again.")).to_be_visible()
    context.close()
