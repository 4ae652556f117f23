"""Chats without a connection: for those who want them in their browser, and for nobody after them."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.gate import Gate
from tests.browser.pages import cookies_of, last_answer, wait_for
from tests.chat.reader import Reader
from tests.sites import Site

QUESTION, MORE = "What is 17 * 23?", "What day is it today?"
OUT_OF_REACH = "Your server is out of reach"
ADDRESSES = """(async () => {
  const names = (await caches.keys()).filter((name) => name.startsWith("vitrine-chats-"));
  const found = [];
  for (const name of names) {
    for (const { url } of await (await caches.open(name)).keys()) found.push(new URL(url).pathname);
  }
  return found;
})()"""


@pytest.fixture
def alice(vitrine_server: Site) -> Iterator[Reader]:
    vitrine_server.set_up()
    reader = Reader.signed_up(vitrine_server, "Keeping")
    with closing(reader.client), reader:
        yield reader


def chat_of(reader: Reader, question: str = QUESTION) -> tuple[str, str]:
    """Address and answer of a new chat."""
    accepted = reader.send(question)
    reader.hear_end(accepted["run"])
    return accepted["conversation"]["url"], reader.text(accepted["run"]).strip()


@pytest.fixture
def context(browser: Browser, gate: Gate, alice: Reader) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=gate.url, service_workers="allow")
    context.add_cookies(cookies_of(alice.client, gate.url))
    yield context
    context.close()


@pytest.fixture
def shell(context: BrowserContext) -> Page:
    """The chat behind the gate, with a worker and the wish to keep chats."""
    page = context.new_page()
    page.goto("/")
    wait_for(page, "navigator.serviceWorker.ready.then(() => true)")
    wait_for(page, "Boolean(navigator.serviceWorker.controller)")
    page.goto("/settings/#keep-chats-label")
    page.get_by_text("Kept here").click()
    return page


def open_and_keep(page: Page, address: str) -> None:
    page.goto(address)
    expect(last_answer(page)).to_be_visible()
    kept = f"/api/conversations/{address.removeprefix('/c/')}"
    wait_for(page, f"{ADDRESSES}.then((all) => all.includes('{kept}') && all.includes('/'))")


def addresses(page: Page) -> list[str]:
    found: list[str] = page.evaluate(ADDRESSES)
    return found


def test_what_was_opened_can_be_read_without_a_connection(
    shell: Page, gate: Gate, alice: Reader
) -> None:
    (first, answer), (second, other) = chat_of(alice), chat_of(alice, MORE)
    unopened, _ = chat_of(alice, "Who are you?")
    open_and_keep(shell, first)
    open_and_keep(shell, second)
    gate.is_open = False
    shell.goto(first)
    expect(last_answer(shell)).to_contain_text(answer)
    expect(shell.locator(".message--user")).to_contain_text([QUESTION])
    expect(shell.locator("status-bar")).to_contain_text("No connection. Nothing is lost.")
    shell.locator(f"chat-sidebar a[href='{second}']").click()
    expect(last_answer(shell)).to_contain_text(other)
    shell.reload()
    expect(last_answer(shell)).to_contain_text(other)
    expect(shell.locator(f"chat-sidebar a[href='{first}']")).to_be_visible()
    # What was not opened is not there, and says so.
    shell.locator(f"chat-sidebar a[href='{unopened}']").click()
    expect(shell.locator(".unopened")).to_be_visible()
    shell.goto("/settings/")
    expect(shell.get_by_role("heading", name=OUT_OF_REACH)).to_be_visible()
    gate.is_open = True
    shell.goto(unopened)
    expect(last_answer(shell)).to_be_visible()


def test_what_is_shown_is_kept_as_soon_as_that_is_wanted(
    context: BrowserContext, alice: Reader
) -> None:
    address, _ = chat_of(alice)
    page = context.new_page()
    page.goto(address)
    expect(last_answer(page)).to_be_visible()
    page.keyboard.press("Control+,")
    page.locator("dialog.settings-dialog[open]").get_by_text("Kept here").click()
    kept = f"/api/conversations/{address.removeprefix('/c/')}"
    wait_for(page, f"{ADDRESSES}.then((all) => all.includes('{kept}') && all.includes('/'))")


def test_an_answer_that_came_later_is_kept_too(shell: Page, gate: Gate, alice: Reader) -> None:
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    conversation = address.removeprefix("/c/")
    leaf = alice.frames[-1]["message"]
    accepted = alice.send(MORE, conversation=conversation, parent=leaf)
    alice.hear_end(accepted["run"])
    shell.reload()
    expect(shell.locator(".message--user")).to_have_count(2)
    wait_for(shell, f"caches.match('/api/conversations/{conversation}').then((r) => r.text())"
                    f".then((text) => text.includes('{MORE}'))")  # fmt: skip
    gate.is_open = False
    shell.goto(address)
    expect(shell.locator(".message--user")).to_contain_text([QUESTION, MORE])


def test_signing_out_leaves_nothing(shell: Page, alice: Reader) -> None:
    """Before any page has come: the next one may never come."""
    open_and_keep(shell, chat_of(alice)[0])
    shell.goto("/settings/#account")
    shell.evaluate(
        "document.addEventListener('submit', (event) => event.preventDefault(), { capture: true })"
    )
    shell.locator("[data-sign-out] button").click()
    wait_for(shell, f"{ADDRESSES}.then((all) => all.length === 0)")


def test_a_session_that_has_ended_leaves_nothing(
    shell: Page, gate: Gate, alice: Reader, context: BrowserContext
) -> None:
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    context.clear_cookies()
    shell.goto("/")
    shell.wait_for_url("**/accounts/login/**")
    wait_for(shell, f"{ADDRESSES}.then((all) => all.length === 0)")
    gate.is_open = False
    shell.goto(address)
    expect(shell.get_by_role("heading", name=OUT_OF_REACH)).to_be_visible()


def test_who_comes_next_finds_nothing(
    shell: Page, gate: Gate, alice: Reader, context: BrowserContext, reader_cookies: list[Any]
) -> None:
    """Another session in the same browser, without a sign-in page between: it wants nothing kept."""
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    context.clear_cookies()
    context.add_cookies([{**cookie, "url": gate.url} for cookie in reader_cookies])
    shell.goto("/")
    wait_for(shell, f"{ADDRESSES}.then((all) => all.length === 0)")
    gate.is_open = False
    shell.goto(address)
    expect(shell.get_by_role("heading", name=OUT_OF_REACH)).to_be_visible()


def test_who_wants_it_no_more_has_nothing(shell: Page, alice: Reader) -> None:
    open_and_keep(shell, chat_of(alice)[0])
    shell.goto("/settings/#keep-chats-label")
    expect(shell.get_by_role("radio", name="Kept here")).to_be_checked()
    shell.get_by_text("Not kept").click()
    wait_for(shell, f"{ADDRESSES}.then((all) => all.length === 0)")
    shell.goto("/")
    shell.wait_for_timeout(500)
    assert addresses(shell) == []


def delete(reader: Reader, *addresses: str) -> None:
    gone = [{"id": one.removeprefix("/c/"), "deleted": True} for one in addresses]
    response = reader.change("PATCH", "/api/conversations", changes=gone)
    assert response.status_code == 200, response.text


def test_what_was_deleted_elsewhere_goes_when_it_is_asked_for(shell: Page, alice: Reader) -> None:
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    delete(alice, address)
    conversation = address.removeprefix("/c/")
    status = shell.evaluate(f"fetch('/api/conversations/{conversation}').then((r) => r.status)")
    assert status == 404
    assert addresses(shell) == ["/"]


def test_what_is_deleted_in_the_archive_goes_at_once(shell: Page, alice: Reader) -> None:
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    conversation = address.removeprefix("/c/")
    changes = [{"id": conversation, "archived": True}]
    assert alice.change("PATCH", "/api/conversations", changes=changes).status_code == 200
    shell.goto("/settings/#archived-title")
    shell.locator("archived-chats").get_by_role("button", name="Delete").click()
    wait_for(
        shell, f"{ADDRESSES}.then((all) => !all.some((one) => one.endsWith('{conversation}')))"
    )
    assert "/" not in addresses(shell)  # which lists it


def test_a_chat_that_is_not_kept_is_not_taken_for_a_new_one(
    shell: Page, gate: Gate, alice: Reader
) -> None:
    kept, unknown = chat_of(alice)[0], chat_of(alice, MORE)[0]
    open_and_keep(shell, kept)
    gate.is_open = False
    shell.goto(unknown)
    expect(shell.get_by_role("heading", name=OUT_OF_REACH)).to_be_visible()
    gate.is_open = True
    shell.evaluate("dispatchEvent(new Event('online'))")
    expect(last_answer(shell)).to_be_visible()


def test_a_proxy_that_finds_no_server_is_no_answer(shell: Page, gate: Gate, alice: Reader) -> None:
    address, answer = chat_of(alice)
    open_and_keep(shell, address)
    gate.status = 502, "text/html"
    shell.goto(address)
    expect(last_answer(shell)).to_contain_text(answer)
    shell.goto("/settings/")
    expect(shell.get_by_role("heading", name=OUT_OF_REACH)).to_be_visible()
    gate.status = 503, "application/json"
    shell.goto("/readyz")  # that is the site's own word
    expect(shell.locator("body")).to_contain_text("unready")


def test_a_sign_in_page_that_cannot_come_costs_nothing(
    shell: Page, gate: Gate, alice: Reader
) -> None:
    address, answer = chat_of(alice)
    open_and_keep(shell, address)
    gate.is_open = False
    shell.goto("/accounts/login/")
    expect(shell.get_by_role("heading", name=OUT_OF_REACH)).to_be_visible()
    shell.goto(address)
    expect(last_answer(shell)).to_contain_text(answer)
    gate.is_open = True
    shell.goto("/accounts/login/")  # who is signed in is led away
    shell.wait_for_url("**/")
    assert any(one.startswith("/api/") for one in addresses(shell))


def test_what_was_wiped_is_kept_again_by_who_goes_on(shell: Page, alice: Reader) -> None:
    """A tab that stays open, and is told that its session goes on."""
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    shell.evaluate(
        """async () => {
          const names = (await caches.keys()).filter((one) => one.startsWith("vitrine-chats-"));
          for (const name of names) await caches.delete(name);
        }"""
    )
    shell.locator("chat-sidebar").get_by_role("link", name="New chat").first.click()
    shell.go_back()
    kept = f"/api/conversations/{address.removeprefix('/c/')}"
    wait_for(shell, f"{ADDRESSES}.then((all) => all.includes('{kept}'))")


def test_fifty_are_kept_the_latest(shell: Page, alice: Reader) -> None:
    first, second = chat_of(alice)[0], chat_of(alice, MORE)[0]
    open_and_keep(shell, first)
    shell.evaluate(
        """async () => {
          const [name] = (await caches.keys()).filter((one) => one.startsWith("vitrine-chats-"));
          const cache = await caches.open(name);
          for (let n = 0; n < 52; n++) await cache.put(`/api/conversations/${n}`, new Response("{}"));
        }"""
    )
    open_and_keep(shell, second)
    wait_for(shell, f"{ADDRESSES}.then((all) => all.length === 51)")  # and the page
    kept = addresses(shell)
    assert f"/api/conversations/{second.removeprefix('/c/')}" in kept
    assert f"/api/conversations/{first.removeprefix('/c/')}" not in kept
    assert "/api/conversations/51" in kept
    assert "/api/conversations/0" not in kept


def test_a_new_version_keeps_its_own_page_and_no_older_one(
    shell: Page, gate: Gate, alice: Reader
) -> None:
    """Of the same files the page stays; of others it goes, and the next visit keeps a new one."""
    address, _ = chat_of(alice)
    open_and_keep(shell, address)
    for version, is_older in (("vitrine-000000000000", False), ("vitrine-111111111111", True)):
        if is_older:
            shell.evaluate("""async () => {
              const [name] = (await caches.keys()).filter((one) => one.startsWith("vitrine-chats-"));
              const cache = await caches.open(name);
              const page = await (await cache.match("/")).text();
              const older = page.replaceAll(/chat\\.[0-9a-f]{12}/g, "chat.aaaaaaaaaaaa");
              await cache.put("/", new Response(older, { headers: { "Content-Type": "text/html" } }));
            }""")
        gate.worker_version = version
        shell.evaluate("navigator.serviceWorker.getRegistration().then((one) => one.update())")
        wait_for(
            shell, "navigator.serviceWorker.getRegistration().then((one) => Boolean(one.waiting))"
        )
        shell.route("**/", lambda route: route.abort())  # so that the visit keeps none
        shell.evaluate("navigator.serviceWorker.getRegistration()"
                       ".then((one) => one.waiting.postMessage({ type: 'take-over' }))")  # fmt: skip
        of_files = "filter((name) => !name.startsWith('vitrine-chats-'))"
        wait_for(shell, f"caches.keys().then((all) => all.{of_files}.join() === '{version}')")
        found = f"{ADDRESSES}.then((all) => all.includes('/') === {str(not is_older).lower()})"
        wait_for(shell, found)
        assert any(one.startswith("/api/") for one in addresses(shell))
