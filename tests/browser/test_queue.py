"""Messages that wait until the answer before has ended."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, ask, last_answer
from tests.browser.scripted import ScriptedChat

PATIENCE_MS = 5_000  # static/js/chat-sending.js


def queue(page: Page, text: str) -> None:
    page.fill(INPUT, text)
    page.press(INPUT, "Enter")
    expect(page.locator(".queue__item", has_text=text)).to_be_visible()
    expect(page.locator(INPUT)).to_have_value("")


def test_what_is_written_meanwhile_waits_survives_a_reload_and_is_sent(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "First")
    page.wait_for_url("**/c/*")
    queue(page, "Second")
    queue(page, "Third")
    assert len(chat.heard_of("message.send")) == 1
    page.goto("/")  # the page anew; the script has no page for the chat's own address
    page.locator("status-bar:defined").wait_for(state="attached")
    chat.say({"type": "conversation.changed", "conversation": chat.conversation, "running": []})
    page.get_by_role("link", name="First", exact=True).click()
    expect(page.locator(".queue__text")).to_have_text(["Second", "Third"])
    expect(last_answer(page)).to_have_attribute("data-status", "running")  # it is read behind them
    chat.finish("r1")
    expect(page.locator(".message--user .message__text")).to_have_text(["First", "Second"])
    expect(page.locator(".queue__text")).to_have_text(["Third"])
    chat.finish("r2")
    expect(page.locator(".message--user")).to_have_count(3)
    expect(page.locator(".queue__item")).to_have_count(0)
    chat.finish("r3")
    sent = chat.heard_of("message.send")
    assert [frame["text"] for frame in sent] == ["First", "Second", "Third"]
    assert [frame["parent"] for frame in sent] == [None, "a1", "a2"]


def test_what_waits_in_a_new_chat_stays_its_own_when_another_is_begun(
    chat: ScriptedChat, page: Page
) -> None:
    chat.auto_accept = False
    ask(page, "First")
    queue(page, "Second")
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(".message")).to_have_count(0)
    page.wait_for_timeout(100)
    assert len(chat.heard_of("message.send")) == 1
    chat.auto_accept = True
    chat.accept(chat.heard_of("message.send")[0])
    expect(page.locator(".queue__item")).to_have_count(0)
    page.get_by_role("link", name="First", exact=True).click()
    expect(page.locator(".queue__text")).to_have_text(["Second"])
    expect(last_answer(page)).to_have_attribute("data-status", "running")
    chat.finish("r1")
    expect(page.locator(".message--user .message__text")).to_have_text(["First", "Second"])
    assert [frame["parent"] for frame in chat.heard_of("message.send")] == [None, "a1"]


@pytest.fixture
def other(chat: ScriptedChat, page: Page, reader: BrowserContext) -> Iterator[ScriptedChat]:
    """A second tab on a chat in which two messages wait; the first tab has just sent one of them."""
    ask(page, "First")
    page.wait_for_url("**/c/*")
    queue(page, "Second")
    queue(page, "Third")
    other = ScriptedChat(reader.new_page())
    other.conversation, other.messages = chat.conversation, chat.messages
    other.page.goto("/")
    other.page.locator("status-bar:defined").wait_for(state="attached")
    other.say({"type": "conversation.changed", "conversation": chat.conversation, "running": []})
    other.page.get_by_role("link", name="First", exact=True).click()
    expect(other.page.locator(".queue__text")).to_have_text(["Second", "Third"])
    expect(last_answer(other.page)).to_have_attribute("data-status", "running")
    chat.auto_accept = other.auto_accept = False
    chat.finish("r1")
    expect(page.locator(".message--user")).to_have_count(2)
    expect(other.page.locator(".queue__text")).to_have_text(["Third"])
    yield other
    other.page.close()


def test_of_two_tabs_one_sends_what_waits(chat: ScriptedChat, other: ScriptedChat) -> None:
    other.page.clock.install()
    other.finish("r1")
    expect(last_answer(other.page)).to_have_attribute("data-status", "complete")
    other.page.wait_for_timeout(100)
    assert [frame["text"] for frame in chat.heard_of("message.send")] == ["First", "Second"]
    chat.accept(chat.heard_of("message.send")[-1])
    expect(last_answer(chat.page)).to_have_attribute("data-status", "running")
    other.page.clock.fast_forward(PATIENCE_MS)
    other.page.wait_for_timeout(100)
    assert other.heard_of("message.send") == []


def test_what_a_tab_had_sent_that_was_closed_is_sent_by_another(
    chat: ScriptedChat, page: Page, other: ScriptedChat
) -> None:
    other.page.clock.install()
    page.close()
    other.finish("r1")
    expect(last_answer(other.page)).to_have_attribute("data-status", "complete")
    other.page.clock.fast_forward(PATIENCE_MS)
    expect(other.page.locator(".message--user .message__text")).to_have_text(["First", "Second"])
    expect(other.page.locator(".queue__text")).to_have_text(["Third"])
    sent = [*chat.heard_of("message.send"), *other.heard_of("message.send")]
    assert [frame["text"] for frame in sent] == ["First", "Second", "Second"]
    assert sent[1]["client_id"] == sent[2]["client_id"]


def test_a_waiting_message_is_changed_and_removed_by_keys(chat: ScriptedChat, page: Page) -> None:
    ask(page, "First")
    queue(page, "Second")
    queue(page, "Third")
    page.press(INPUT, "ArrowUp")
    expect(page.locator(".queue__item").last).to_be_focused()
    page.keyboard.press("Delete")
    expect(page.locator(".queue__text")).to_have_text(["Second"])
    expect(page.locator(".queue__item")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".queue__item")).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value("Second")
    expect(page.locator(INPUT)).to_be_focused()
    chat.finish("r1")
    page.wait_for_timeout(100)
    assert len(chat.heard_of("message.send")) == 1


def test_after_a_failure_the_next_one_waits_to_be_told(chat: ScriptedChat, page: Page) -> None:
    ask(page, "First")
    queue(page, "Second")
    chat.event("r1", "failed", code="x", message="The engine died.", retry_after_s=None)
    expect(page.locator(".queue__held")).to_contain_text("failed")
    assert len(chat.heard_of("message.send")) == 1
    page.get_by_role("button", name="Send now").click()
    expect(page.locator(".message--user")).to_have_count(2)
    expect(last_answer(page)).to_have_attribute("data-status", "running")
