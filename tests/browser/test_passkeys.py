"""Passkeys in Chromium, with an authenticator of its own making (WebAuthn over CDP)."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from tests.browser.pages import cookies_of
from tests.sites import PASSWORD, Site, email_of

_numbers = count(1)
SECURITY = "/settings/security/"


@pytest.fixture(scope="session")
def origin(vitrine_server: Site) -> str:
    """Passkeys belong to a name; 127.0.0.1 is none."""
    return f"http://localhost:{vitrine_server.port}"


@pytest.fixture(scope="session")
def base_url(origin: str) -> str:
    return origin


@pytest.fixture
def person(vitrine_server: Site, context: BrowserContext, origin: str) -> str:
    """The address of somebody who is signed in to this browser."""
    vitrine_server.set_up()
    name = f"key{next(_numbers)}"
    visitor = vitrine_server.sign_up(name)
    context.add_cookies(cookies_of(visitor, origin))
    return email_of(name)


@pytest.fixture
def devtools(context: BrowserContext, page: Page) -> Iterator[CDPSession]:
    session = context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    yield session
    session.send("WebAuthn.disable")


@pytest.fixture
def authenticator(devtools: CDPSession) -> str:
    return add_authenticator(devtools)


def add_authenticator(devtools: CDPSession, **more: Any) -> str:
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
        **more,
    }
    made = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return str(made["authenticatorId"])


def credentials(devtools: CDPSession, authenticator: str) -> list[Any]:
    sent = {"authenticatorId": authenticator}
    return list(devtools.send("WebAuthn.getCredentials", sent)["credentials"])


def confirm(page: Page) -> None:
    page.fill("[name=password]", PASSWORD)
    page.click("main .button--primary")


def add_passkey(page: Page, origin: str, name: str = "Laptop") -> None:
    page.goto(f"{origin}{SECURITY}passkeys/add")
    if "/reauthenticate/" in page.url:
        confirm(page)
    page.fill("[name=name]", name)
    page.click("main .button--primary")
    page.wait_for_url("**/codes")


def sign_out(page: Page, origin: str) -> None:
    page.goto(f"{origin}/accounts/logout/")
    page.click("main button")
    page.wait_for_url("**/accounts/login/")


def test_a_passkey_signs_in_by_itself(
    page: Page, origin: str, person: str, devtools: CDPSession, authenticator: str
) -> None:
    add_passkey(page, origin)
    kept = credentials(devtools, authenticator)
    assert [(one["isResidentCredential"], one["rpId"]) for one in kept] == [(True, "localhost")]
    expect(page.locator(".codes code")).to_have_count(10)
    sign_out(page, origin)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{origin}/")
    page.goto(f"{origin}{SECURITY}")
    expect(page.get_by_text("Laptop", exact=True)).to_be_visible()
    expect(page.get_by_text("last used")).to_be_visible()


def test_the_password_alone_is_not_enough_and_the_passkey_is_the_second_step(
    page: Page, origin: str, person: str, authenticator: str
) -> None:
    add_passkey(page, origin)
    code = page.locator(".codes code").first.inner_text()
    sign_out(page, origin)
    for how in ("passkey", "code"):
        page.fill("[name=login]", person)
        page.fill("[name=password]", PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url("**/second-step/")
        page.goto(f"{origin}{SECURITY}")
        assert "/accounts/login/" in page.url or "second-step" in page.url
        page.goto(f"{origin}/accounts/second-step/")
        if how == "passkey":
            page.get_by_role("button", name="Use a passkey").click()
        else:
            page.fill("[name=code]", code)
            page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{origin}/")
        sign_out(page, origin)


def test_a_passkey_is_proof_enough_to_change_things(
    page: Page, origin: str, person: str, authenticator: str
) -> None:
    add_passkey(page, origin)
    sign_out(page, origin)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{origin}/")
    page.goto(f"{origin}{SECURITY}")
    page.get_by_role("link", name="Remove Laptop").click()
    page.get_by_role("link", name="Use a passkey").click()
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("button", name="Remove the passkey").click()
    page.wait_for_url(f"{origin}{SECURITY}")
    expect(page.get_by_text("Laptop", exact=True)).to_have_count(0)
    expect(page.get_by_role("heading", name="Recovery codes")).to_have_count(0)


def test_a_passkey_that_is_removed_here_opens_nothing(
    page: Page, origin: str, person: str, authenticator: str
) -> None:
    add_passkey(page, origin)
    page.goto(f"{origin}{SECURITY}")
    page.get_by_role("link", name="Remove Laptop").click()
    page.get_by_role("button", name="Remove the passkey").click()
    sign_out(page, origin)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("status").filter(has_text="Incorrect")).to_be_visible()
    assert page.url.startswith(f"{origin}/accounts/login/")


def test_what_goes_wrong_is_said(
    page: Page, origin: str, person: str, devtools: CDPSession
) -> None:
    authenticator = add_authenticator(devtools, isUserVerified=False)
    page.goto(f"{origin}{SECURITY}passkeys/add")
    confirm(page)
    page.click("main .button--primary")
    expect(page.locator("[data-passkey-status]")).to_contain_text("Nothing has changed")
    expect(page.locator("main .button--primary")).to_be_enabled()
    assert credentials(devtools, authenticator) == []


def test_a_site_without_a_name_says_that_it_needs_one(
    browser: Browser, person: str, vitrine_server: Site, context: BrowserContext
) -> None:
    with closing(browser.new_context(base_url=vitrine_server.url)) as by_number:
        session = [cookie for cookie in context.cookies() if "session" in cookie["name"]]
        here = [
            {"name": c["name"], "value": c["value"], "url": vitrine_server.url} for c in session
        ]
        by_number.add_cookies(here)  # type: ignore[arg-type]
        page = by_number.new_page()
        page.goto(f"{SECURITY}passkeys/add")
        confirm(page)
        expect(page.locator("[data-passkey-status]")).to_contain_text("localhost")
        expect(page.locator("main .button--primary")).to_be_disabled()
        by_number.clear_cookies()
        page.goto("/accounts/login/")
        expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
