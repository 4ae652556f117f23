"""Shortcuts with keys of one's own."""

from playwright.sync_api import BrowserContext, Page, expect

SIDEBAR = "Show or hide the sidebar"


def test_a_shortcut_gets_other_keys_and_its_usual_ones_back(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/settings/#keyboard")
    status = page.locator("[data-shortcuts-status]")
    keys = page.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + S")
    keys.click()
    page.keyboard.press("Control+Shift+KeyO")
    expect(status).to_have_text("Ctrl + Shift + O: These keys are taken: New chat.")
    expect(keys).to_be_visible()
    keys.click()
    page.keyboard.press("Control+KeyC")
    expect(status).to_contain_text("The browser needs these keys itself.")
    keys.click()
    page.keyboard.press("Escape")
    expect(keys).to_be_visible()
    keys.click()
    page.keyboard.press("Control+Shift+KeyL")
    expect(page.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + L")).to_be_focused()

    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    closed = page.locator("html[data-sidebar=closed]")
    page.keyboard.press("Control+Shift+KeyS")
    expect(closed).to_have_count(0)
    page.keyboard.press("Control+Shift+KeyL")
    expect(closed).to_have_count(1)
    hint = page.locator(".bar [data-toggle-sidebar]")
    expect(hint).to_have_attribute("aria-keyshortcuts", "Control+Shift+l Meta+Shift+l")
    page.keyboard.press("Control+/")
    expect(page.get_by_role("dialog")).to_contain_text("Ctrl + Shift + L")

    page.goto("/settings/")
    page.get_by_role("button", name="Usual keys for all").click()
    expect(page.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + S")).to_be_visible()
    expect(page.get_by_role("button", name="Usual keys for all")).to_be_hidden()
