"""The settings are found by what people call them, from every page of theirs."""

from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from webapp.settings_places import PLACES


def search_in(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Search the settings")


def found(page: Page) -> Locator:
    return page.locator(".settings__found a:visible")


def test_each_place_is_there(reader: BrowserContext, page: Page) -> None:
    by_page: dict[str, list[str]] = {}
    for place in PLACES:
        by_page.setdefault(place.page, []).append(place.fragment)
    assert len(by_page) > 5
    for address, fragments in by_page.items():
        response = page.goto(address)
        assert response is not None, address
        assert response.ok, address
        assert urlsplit(page.url).path == address
        for fragment in filter(None, fragments):
            expect(page.locator(f"[id='{fragment}']")).to_be_visible()


def test_a_setting_is_found_by_another_word(reader: BrowserContext, page: Page) -> None:
    page.goto("/settings/keys")
    pages = page.locator(".settings__pages > a")
    expect(pages.nth(1)).to_be_visible()
    expect(page.locator(".settings__found")).to_be_hidden()
    search_in(page).fill("dark")
    expect(found(page)).to_have_count(1)
    expect(found(page)).to_have_text("Appearance General")
    expect(page.locator(".settings__back")).to_be_visible()
    expect(pages.nth(1)).to_be_hidden()
    search_in(page).press("Enter")
    page.wait_for_url("**/settings/#theme-label")
    expect(page.locator("#theme-label")).to_be_in_viewport()


def test_by_keys_alone(reader: BrowserContext, page: Page) -> None:
    page.goto("/settings/")
    search_in(page).fill("delete")
    expect(found(page)).to_have_count(2)
    search_in(page).press("ArrowDown")
    expect(found(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # there is no third
    expect(found(page).nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(search_in(page)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(search_in(page)).to_be_focused()
    expect(search_in(page)).to_have_value("")
    expect(found(page)).to_have_count(0)
    search_in(page).fill("delete all")
    page.keyboard.press("Enter")  # on this very page: the list of pages is back
    page.wait_for_url("**/settings/#delete-all-label")
    expect(found(page)).to_have_count(0)
    expect(page.locator(".settings__pages > a").nth(1)).to_be_visible()
    expect(page.locator("#delete-all-label")).to_be_in_viewport()


def test_what_is_not_there_is_said(reader: BrowserContext, page: Page) -> None:
    page.goto("/settings/")
    search_in(page).fill("<img src=x onerror=alert(1)> nothing")
    expect(page.locator(".settings__none")).to_have_text("No setting is called that.")
    expect(page.locator(".settings__none")).to_be_visible()
    search_in(page).fill("   ")
    expect(page.locator(".settings__none")).to_be_hidden()
    expect(page.locator(".settings__pages > a").nth(1)).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_what_is_found_is_accessible(
    reader: BrowserContext, page: Page, theme: str, width: int
) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/settings/")
    search_in(page).fill("e")
    assert found(page).count() > 5
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)


@pytest.mark.browser_context_args(locale="de")
def test_in_german_without_its_marks(reader: BrowserContext, page: Page) -> None:
    page.goto("/settings/")
    page.get_by_role("searchbox", name="Einstellung suchen").fill("losch")
    expect(found(page).filter(has_text="Konto löschen")).to_be_visible()


def test_on_a_phone_the_pages_stand_in_one_row_and_keys_are_left_out(
    browser: Browser, base_url: str, reader_cookies: list[Any]
) -> None:
    phone: Any = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with closing(browser.new_context(base_url=base_url, **phone)) as context:
        context.add_cookies(reader_cookies)
        _look_at_pages(context.new_page())


def _look_at_pages(page: Page) -> None:
    page.goto("/settings/usage")
    links = page.locator(".settings__pages > a:visible")
    tops = links.evaluate_all("links => links.map((link) => link.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    expect(links.filter(has_text="Usage")).to_be_in_viewport()
    expect(page.locator("[data-needs-keyboard]")).to_be_hidden()
    page.goto("/settings/")
    expect(page.locator("#keyboard")).to_be_hidden()
