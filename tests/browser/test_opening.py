"""Between two chats: what is written while one opens, and one that does not open."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.pages import INPUT, ask
from tests.browser.scripted import ScriptedChat

LIST = "message-list"
UNOPENED = ".unopened"
HINT = "#composer-hint"


@pytest.fixture
def left(chat: ScriptedChat, page: Page) -> ScriptedChat:
    """A chat with a whole answer, and its reader in a new one, where something is typed."""
    ask(page, "First")
    chat.write("r1", "An answer")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    chat.messages[1] |= {"status": "complete", "parts": [{"type": "text", "text": "An answer"}]}
    page.locator(".sidebar__new [data-new-chat]").click()
    page.fill(INPUT, "For the new chat")
    return chat


def id_of(chat: ScriptedChat) -> str:
    assert chat.conversation is not None
    return str(chat.conversation["id"])


def open_first(page: Page) -> None:
    page.get_by_role("link", name="First", exact=True).click()


def held(page: Page, chat: ScriptedChat) -> list[Route]:
    """Where the answers to the reading of the chat wait from now on."""
    routes: list[Route] = []
    page.route(f"**/api/conversations/{id_of(chat)}", lambda route: routes.append(route))
    return routes


def test_what_is_sent_while_a_chat_opens_goes_into_that_chat(
    left: ScriptedChat, page: Page
) -> None:
    routes = held(page, left)
    open_first(page)
    expect(page.locator(LIST)).to_have_attribute("aria-busy", "true")
    expect(page.locator(INPUT)).to_have_value("")
    page.fill(INPUT, "Second")
    page.press(INPUT, "Enter")
    expect(page.locator(HINT)).to_have_text("The message is sent as soon as the chat is open.")
    expect(page.locator(INPUT)).to_have_value("Second")
    assert len(left.heard_of("message.send")) == 1
    routes[0].fallback()
    expect(page.locator(".message--user")).to_have_count(2)
    expect(page.locator(INPUT)).to_have_value("")
    sent = left.heard_of("message.send")[1]
    assert (sent["conversation"], sent["parent"]) == (id_of(left), "a1")
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(INPUT)).to_have_value("For the new chat")


def test_a_chat_that_is_left_while_it_thinks_keeps_no_clock(chat: ScriptedChat, page: Page) -> None:
    page.evaluate(
        """() => {
          window.clocks = new Set();
          const [begin, end] = [window.setInterval, window.clearInterval];
          window.setInterval = (...given) => {
            const clock = begin(...given);
            window.clocks.add(clock);
            return clock;
          };
          window.clearInterval = (clock) => {
            window.clocks.delete(clock);
            end(clock);
          };
        }"""
    )
    ask(page, "Think")
    before = page.evaluate("window.clocks.size")
    chat.write("r1", "Let me think.", part="reasoning")
    expect(page.locator(".aside--reasoning")).to_be_visible()
    assert page.evaluate("window.clocks.size") == before + 1
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(".message")).to_have_count(0)
    assert page.evaluate("window.clocks.size") == before


def test_a_chat_that_does_not_open_can_be_tried_again(left: ScriptedChat, page: Page) -> None:
    address = f"/c/{id_of(left)}"
    page.route(f"**/api/conversations/{id_of(left)}", lambda route: route.abort())
    open_first(page)
    expect(page.locator(UNOPENED)).to_contain_text("The server cannot be reached.")
    expect(page).to_have_url(address)
    expect(page.locator(".welcome")).to_be_hidden()
    page.fill(INPUT, "Second")
    page.press(INPUT, "Enter")
    expect(page.locator(HINT)).to_contain_text("The chat could not be opened.")
    assert len(left.heard_of("message.send")) == 1
    page.unroute(f"**/api/conversations/{id_of(left)}")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".message--user")).to_have_count(1)
    expect(page.locator(UNOPENED)).to_be_hidden()
    expect(page.locator(INPUT)).to_have_value("Second")  # it was not to wait so long
    page.press(INPUT, "Enter")
    expect(page.locator(".message--user")).to_have_count(2)
    assert left.heard_of("message.send")[1]["conversation"] == id_of(left)


def test_a_chat_that_did_not_open_comes_with_the_line(left: ScriptedChat, page: Page) -> None:
    page.route(f"**/api/conversations/{id_of(left)}", lambda route: route.abort())
    open_first(page)
    expect(page.locator(UNOPENED)).to_be_visible()
    page.unroute(f"**/api/conversations/{id_of(left)}")
    left.go_away()
    left.come_back()
    expect(page.locator(".message--user")).to_have_count(1)
    expect(page.locator(UNOPENED)).to_be_hidden()


def test_a_chat_that_is_gone_leads_back(left: ScriptedChat, page: Page) -> None:
    gone = {"error": {"code": "not_found", "message": "There is no such chat."}}
    page.route(
        f"**/api/conversations/{id_of(left)}", lambda route: route.fulfill(status=404, json=gone)
    )
    open_first(page)
    expect(page.locator(".toast")).to_contain_text("There is no such chat.")
    expect(page).to_have_url("/")
    expect(page.locator(INPUT)).to_have_value("For the new chat")
    ask(page, "Hello")
    assert left.heard_of("message.send")[1]["conversation"] is None


def open_first_beside_other(left: ScriptedChat, page: Page) -> str:
    """The chat is shown, and a second one listed; returns where that one is asked for."""
    open_first(page)
    expect(page.locator(".message--user")).to_have_count(1)
    other = {**(left.conversation or {}), "id": id_of(left).replace("1", "2"), "title": "Other"}
    other["url"] = f"/c/{other['id']}"
    left.say({"type": "conversation.changed", "conversation": other, "running": []})
    return f"**/api/conversations/{other['id']}"


def test_who_turns_back_to_the_chat_that_is_still_there_need_not_wait(
    left: ScriptedChat, page: Page
) -> None:
    path = open_first_beside_other(left, page)
    page.route(path, lambda route: route.abort())
    page.locator(".chat-link a", has_text="Other").click()
    expect(page.locator(UNOPENED)).to_be_visible()
    expect(page.locator(".message--user")).to_be_hidden()
    open_first(page)
    expect(page.locator(".message--user")).to_be_visible()
    expect(page.locator(UNOPENED)).to_be_hidden()
    page.fill(INPUT, "Second")
    page.press(INPUT, "Enter")
    expect(page.locator(".message--user")).to_have_count(2)


def test_what_is_done_to_a_chat_is_not_done_to_the_one_before(
    left: ScriptedChat, page: Page
) -> None:
    path = open_first_beside_other(left, page)
    routes: list[Route] = []
    page.route(path, lambda route: routes.append(route))
    asked: list[str] = []
    page.on("request", lambda request: id_of(left) in request.url and asked.append(request.url))
    page.locator(".chat-link a", has_text="Other").click()
    states = {f"{LIST}[aria-busy=true]": ("setup", "menu", "tool=share"), UNOPENED: ("setup",)}
    for state, tools in states.items():
        page.locator(state).wait_for()
        for tool in tools:
            page.locator(f".bar [data-chat-{tool}]").click(force=True)
        page.focus(INPUT)
        for keys in ("Control+Shift+E", "Alt+Enter", "Control+Shift+Backspace"):
            page.keyboard.press(keys)
        page.wait_for_timeout(300)
        expect(page.locator("dialog[open], .popover:popover-open")).to_have_count(0)
        while routes:
            routes.pop().abort()
    assert asked == []
    assert left.heard_of("answer.regenerate") == left.heard_of("answer.continue") == []
