"""What the admin console's own script does."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import cookies_of
from tests.sites import Site

NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_the_link_of_an_invitation_is_copied(
    vitrine_server: Site, page: Page, has_clipboard: bool
) -> None:
    """Also where the site is reached by http, and there is no clipboard for scripts."""
    page.context.add_cookies(cookies_of(vitrine_server.set_up(), vitrine_server.url))
    if has_clipboard:
        page.context.grant_permissions(["clipboard-write"])
    else:
        page.add_init_script(NO_CLIPBOARD)
    page.goto("/admin/webapp/invitation/add/")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
