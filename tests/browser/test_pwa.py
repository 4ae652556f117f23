"""Installed on a desk or a phone: what is there without a connection, and after an update."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.gate import Gate
from tests.browser.pages import wait_for
from tests.sites import Site


@pytest.fixture
def shell(browser: Browser, gate: Gate, reader_cookies: list[Any]) -> Iterator[Page]:
    """The chat behind the gate, after its worker has taken over (in other tests none works)."""
    context = browser.new_context(base_url=gate.url, service_workers="allow")
    context.add_cookies([{**cookie, "url": gate.url} for cookie in reader_cookies])
    page = context.new_page()
    page.goto("/")
    wait_for(page, "navigator.serviceWorker.ready.then(() => true)")
    wait_for(page, "Boolean(navigator.serviceWorker.controller)")
    page.reload()
    yield page
    context.close()


def test_the_manifest_and_its_icons_are_there(vitrine_server: Site) -> None:
    with httpx2.Client(base_url=vitrine_server.url) as visitor:
        response = visitor.get("/manifest.webmanifest")
        assert response.headers["content-type"] == "application/manifest+json"
        manifest = response.json()
        assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
        assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
        for icon in manifest["icons"]:
            image = visitor.get(icon["src"])
            width = int.from_bytes(image.content[16:20])
            assert (image.status_code, f"{width}x{width}") == (200, icon["sizes"])
        page = visitor.get("/accounts/login/").text
        assert 'rel="manifest" href="/manifest.webmanifest"' in page


def test_without_a_connection_there_is_an_honest_page_and_it_goes_away(
    shell: Page, gate: Gate
) -> None:
    gate.is_open = False
    shell.goto("/c/0199a1b2-0000-7000-8000-000000000001")
    heading = shell.get_by_role("heading", name="Your server is out of reach")
    expect(heading).to_be_visible()
    expect(heading).to_have_css("font-family", re.compile("Inter"))  # in its own clothes
    shell.get_by_role("link", name="Try again").click()
    expect(heading).to_be_visible()
    shell.goto("/")
    gate.is_open = True
    shell.evaluate("dispatchEvent(new Event('online'))")
    expect(shell.locator("#composer-input")).to_be_visible()


def test_the_worker_keeps_the_interface_and_nothing_of_a_person(shell: Page) -> None:
    shell.goto("/settings/")
    shell.goto("/")
    kept = shell.evaluate(
        """async () => {
          const addresses = [];
          for (const name of await caches.keys()) {
            for (const request of await (await caches.open(name)).keys()) {
              addresses.push(new URL(request.url).pathname);
            }
          }
          return addresses;
        }"""
    )
    assert any(re.search(r"/static/js/chat\.[0-9a-f]{12}\.js$", address) for address in kept)
    hashed = re.compile(r"/static/.+\.[0-9a-f]{12}\.\w+$")
    assert [address for address in kept if not hashed.match(address)] == ["/offline"]
    assert not any("mermaid" in address or "katex" in address for address in kept)


def test_a_new_version_is_told_and_shown_when_asked_for(shell: Page, gate: Gate) -> None:
    gate.worker_version = "vitrine-000000000000"
    shell.evaluate("navigator.serviceWorker.getRegistration().then((one) => one.update())")
    toast = shell.locator(".toast", has_text="A new version of Vitrine is there.")
    expect(toast).to_be_visible(timeout=60_000)
    assert len(shell.evaluate("caches.keys()")) == 2  # the old page may still need the old files
    with shell.expect_navigation():
        toast.get_by_role("button", name="Reload").click()
    wait_for(shell, "caches.keys().then((names) => names.join() === 'vitrine-000000000000')")
    expect(shell.locator("#composer-input")).to_be_visible()
