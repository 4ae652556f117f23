"""The data section: export everything, delete everything, import it again; and a foreign file."""

import json
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from tests.browser.pages import cookies_of, last_answer
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.chat.test_import_formats import TRIP
from tests.chat.test_transfer import zip_of
from tests.sites import Site

_numbers = count(1)
WORK_MS = 40_000


@pytest.fixture
def mine(context: BrowserContext, vitrine_server: Site, page: Page) -> Page:
    """A page of somebody whose chats no other test needs."""
    vitrine_server.set_up()
    with closing(vitrine_server.sign_up(f"Keeper{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    return page


def choose(page: Page, name: str, data: bytes) -> Locator:
    panel = page.locator("[data-import-panel]")
    page.locator("[data-import] input").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    )
    return panel


def open_trip(page: Page) -> None:
    """Show a chat that needed no engine."""
    page.goto("/settings/#data")
    panel = choose(page, "conversations.json", json.dumps([TRIP]).encode())
    panel.get_by_role("button", name="Import 1 chat").click(timeout=WORK_MS)
    expect(panel).to_contain_text("1 chat imported.", timeout=WORK_MS)
    page.goto("/")
    page.get_by_role("link", name="Trip to Oslo").first.click()
    expect(last_answer(page)).to_be_visible()


def test_export_delete_import(mine: Page, tmp_path: Path) -> None:
    open_trip(mine)
    shown = mine.locator("message-list").inner_text()

    mine.goto("/settings/#data")
    with mine.expect_download() as downloading:
        mine.get_by_role("button", name="JSON").click()
    saved = tmp_path / downloading.value.suggested_filename
    downloading.value.save_as(saved)
    assert saved.suffix == ".zip"
    expect(mine.locator("[data-export]")).to_contain_text("1 chat exported.")

    mine.get_by_role("button", name="Delete all chats").click()
    dialog = mine.get_by_role("dialog", name="Delete all chats?")
    delete = dialog.get_by_role("button", name="Delete all chats")
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox").fill("delete")
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox").fill("Delete all chats")
    delete.click()
    expect(dialog).to_be_hidden()
    expect(mine.locator(".data__news")).to_have_text("1 chat deleted.")

    panel = choose(mine, "mine.zip", saved.read_bytes())
    expect(panel).to_contain_text("1 chat can be imported.", timeout=WORK_MS)
    expect(panel).to_contain_text("From Vitrine, with 5 messages")
    mine.reload()
    panel.get_by_role("button", name="Import 1 chat").click()
    expect(panel).to_contain_text("1 chat imported.", timeout=WORK_MS)
    mine.goto("/")
    mine.locator(".chat-link a").first.click()
    expect(mine.locator("message-list")).to_have_text(shown, use_inner_text=True)


def test_a_chatgpt_zip_is_reported_and_imported(mine: Page) -> None:
    shards = {
        f"conversations-{n:03}.json": json.dumps([{**TRIP, "conversation_id": f"c{n}"}]).encode()
        for n in range(3)
    }
    shards["conversations-003.json"] = b'[{"title": "A strange one"}]'
    mine.goto("/settings/#data")
    panel = choose(mine, "chatgpt.zip", zip_of(shards))
    expect(panel).to_contain_text("3 chats can be imported.", timeout=WORK_MS)
    expect(panel).to_contain_text("From ChatGPT, with 15 messages")
    expect(panel).to_contain_text("Not imported: images, 3 times")
    panel.get_by_text("What is left out, and why").click()
    expect(panel).to_contain_text("A strange one")
    for scheme in ("light", "dark"):
        mine.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        expect_no_faults(mine)
    panel.get_by_role("button", name="Import 3 chats").click()
    expect(panel).to_contain_text("3 chats imported.", timeout=WORK_MS)
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()
    choose(mine, "chatgpt.zip", zip_of(shards))
    expect(panel).to_contain_text("There is nothing to import.", timeout=WORK_MS)
    expect(panel).to_contain_text("3 chats left out: here already")
    expect_no_sideways_scrolling(mine)
    mine.set_viewport_size({"width": 1280, "height": 720})
    mine.goto("/")
    mine.get_by_role("link", name="Trip to Oslo").first.click()
    expect(mine.locator(".message__text").first).to_contain_text("When does the train leave?")


def test_a_file_that_is_no_chat_says_so(mine: Page) -> None:
    mine.goto("/settings/#data")
    panel = choose(mine, "photo.zip", b"\x89PNG not at all")
    expect(panel).to_contain_text("The file is no JSON.", timeout=WORK_MS)
    expect(panel.get_by_role("button", name="Close")).to_be_visible()


def test_one_chat_is_exported_from_its_bar(mine: Page) -> None:
    open_trip(mine)
    mine.get_by_role("button", name="Export this chat").click()
    dialog = mine.get_by_role("dialog", name="Export this chat")
    expect_no_faults(mine)
    with mine.expect_download() as downloading:
        dialog.get_by_role("button", name="Export").click()
    text = Path(downloading.value.path()).read_text()
    assert "When does the train leave?" in text
    assert downloading.value.suggested_filename.endswith(".md")
    mine.goto(f"{mine.url}/print")
    expect(mine.locator(".message--assistant .prose").last).not_to_be_empty()
    expect(mine.get_by_role("button", name="Print or save as PDF")).to_be_visible()
    expect_no_faults(mine)


def test_links_that_do_not_come_can_be_asked_for_again(mine: Page) -> None:
    def link(title: str) -> dict[str, object]:
        texts = dict.fromkeys(("id", "conversation", "message", "title"), title)
        more = {"kind": "snapshot", "with_steps": False, "shown_name": "", "expires_at": None}
        return {**texts, **more, "url": f"/s/{title}", "created_at": "2026-11-20T10:00:00Z"}

    def answer(route: Route) -> None:
        is_first = "before" not in route.request.url
        items, next = ([link("one")], "one") if is_first else ([link("two")], None)
        route.fulfill(json={"items": items, "next": next})

    mine.route("**/api/shares?*", answer)
    mine.goto("/settings/#data")
    links = mine.locator("[data-shares] ul")
    more = links.get_by_role("button", name="More")
    expect(more).to_be_visible()
    mine.route("**/api/shares?*", lambda route: route.abort(), times=1)
    more.click()
    expect(mine.get_by_text("The server cannot be reached.")).to_be_visible()
    more.click()
    expect(links.locator("[data-share]")).to_have_count(2)
    expect(links.get_by_role("button", name="Copy link: two")).to_be_focused()
    expect(more).to_have_count(0)
