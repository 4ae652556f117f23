"""A browser on a network that lets no WebSocket through still chats."""

import re
from contextlib import closing

from playwright.sync_api import BrowserContext, expect

from tests.browser.pages import answer_text, ask, cookies_of, last_answer
from tests.sites import Site


def test_an_answer_is_read_over_plain_http(vitrine_server: Site, context: BrowserContext) -> None:
    vitrine_server.set_up()
    with closing(vitrine_server.sign_up("lineuser")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    page = context.new_page()
    page.route_web_socket(re.compile(r"/ws/chat/"), lambda socket: socket.close(code=1011))
    page.goto(vitrine_server.url)
    expect(page.locator("status-bar")).to_contain_text("No connection")
    expect(page.locator("status-bar")).to_be_empty()
    ask(page, "What is 17 * 23?")
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=90_000)
    assert "391" in answer_text(page)
    page.reload()
    assert "391" in answer_text(page)
    ask(page, "Write a poem about the sea.")
    page.keyboard.press("Escape")
    expect(last_answer(page)).to_have_attribute("data-status", re.compile("stopped|complete"))
