"""Sending: seen at once, sent once, never lost."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute, expect

from tests.browser.pages import INPUT, answer_text, ask, last_answer
from tests.browser.scripted import TIMINGS, USAGE, ScriptedChat


def refuse(chat: ScriptedChat, kind: str = "message.send") -> None:
    """Do not take the last message."""
    client_id = chat.heard_of(kind)[-1]["client_id"]
    words = "The queue is full. Try again in 5 s."
    chat.say({"type": "error", "code": "overloaded", "message": words, "client_id": client_id})


def test_the_message_and_a_phase_are_seen_before_the_server_says_anything(
    chat: ScriptedChat, page: Page
) -> None:
    chat.auto_accept = False
    ask(page, "Hello")
    expect(page.locator(".message--user")).to_contain_text("Hello")
    expect(last_answer(page).locator(".phase")).to_contain_text("Sending")
    expect(page.locator(INPUT)).to_have_value("")


def test_a_double_click_sends_and_does_not_stop(chat: ScriptedChat, page: Page) -> None:
    page.fill(INPUT, "Hello")
    page.locator(".composer__send").dblclick()
    expect(page.locator(".message--user")).to_have_count(1)
    page.wait_for_timeout(200)
    assert chat.heard_of("run.stop") == []
    expect(page.locator(".composer__send")).to_have_attribute("aria-label", "Stop")
    page.click(".composer__send")
    page.wait_for_timeout(200)
    assert len(chat.heard_of("run.stop")) == 1


def test_a_new_chat_gets_its_address_without_a_reload(chat: ScriptedChat, page: Page) -> None:
    page.evaluate("window.stayed = true")
    ask(page, "Hello")
    page.wait_for_url("**/c/*")
    assert page.evaluate("window.stayed")
    expect(page.locator(".chat-link a[aria-current]")).to_have_text("Hello")
    page.go_back()
    expect(page.locator(".message")).to_have_count(0)
    page.go_forward()
    expect(page.locator(".message--user .message__text")).to_have_text("Hello")


def test_the_keyboard_is_enough(reader: BrowserContext, page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Skip to the message box").focus()
    page.keyboard.press("Enter")
    expect(page.locator(INPUT)).to_be_focused()
    page.keyboard.type("First line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    expect(page.locator(".message--user .message__text")).to_have_text("First line\nsecond line")
    expect(page.locator(INPUT)).to_be_focused()


def test_enter_that_ends_composing_does_not_send(chat: ScriptedChat, page: Page) -> None:
    page.fill(INPUT, "にほん")
    page.dispatch_event(INPUT, "keydown", {"key": "Enter", "isComposing": True})
    page.dispatch_event(INPUT, "keydown", {"key": "Enter", "keyCode": 229})
    expect(page.locator(".message")).to_have_count(0)


def test_nothing_but_space_is_not_sent(chat: ScriptedChat, page: Page) -> None:
    expect(page.locator(".composer__send")).to_have_attribute("aria-disabled", "true")
    page.fill(INPUT, "  \n ")
    page.press(INPUT, "Enter")
    expect(page.locator(".message")).to_have_count(0)


def test_a_refused_message_comes_back_into_the_box(chat: ScriptedChat, page: Page) -> None:
    chat.auto_accept = False
    ask(page, "Too much")
    refuse(chat)
    expect(page.locator(INPUT)).to_have_value("Too much")
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("The queue is full")
    page.reload()
    expect(page.locator(INPUT)).to_have_value("Too much")
    expect(page.locator(".message")).to_have_count(0)


def test_a_refused_message_stands_in_front_of_what_was_typed_since(
    chat: ScriptedChat, page: Page
) -> None:
    chat.auto_accept = False
    ask(page, "Too much")
    page.fill(INPUT, "and more")
    refuse(chat)
    expect(page.locator(INPUT)).to_have_value("Too much\n\nand more")


def test_a_message_that_is_refused_while_another_chat_is_shown_waits_in_its_own(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Hello")
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    chat.auto_accept = False
    ask(page, "Again")
    page.locator(".sidebar__new [data-new-chat]").click()
    page.fill(INPUT, "something else")
    refuse(chat)
    expect(page.locator(".toast")).to_contain_text("The queue is full")
    expect(page.locator(INPUT)).to_have_value("something else")
    page.go_back()
    expect(page.locator(INPUT)).to_have_value("Again")
    expect(page.locator(".message--user")).to_have_count(1)


def test_what_could_not_be_sent_survives_a_reload_and_is_still_one_message(
    chat: ScriptedChat, page: Page
) -> None:
    chat.auto_accept = False
    ask(page, "Keep me")
    chat.auto_accept = True
    page.reload()
    page.wait_for_url("**/c/*")
    expect(page.locator(".message--user")).to_have_count(1)
    expect(page.locator(".message--user")).to_contain_text("Keep me")
    expect(page.locator(INPUT)).to_have_value("")
    first, second = chat.heard_of("message.send")
    assert {**first, "traceparent": ""} == {**second, "traceparent": ""}
    page.goto("/")
    page.wait_for_timeout(100)
    assert len(chat.heard_of("message.send")) == 2, "what is accepted is not sent again"


def test_what_is_typed_before_a_message_is_accepted_stays_apart_from_it(
    chat: ScriptedChat, page: Page
) -> None:
    chat.auto_accept = False
    ask(page, "First")
    page.fill(INPUT, "and then")
    page.reload()
    expect(page.locator(INPUT)).to_have_value("and then")
    expect(page.locator(".message--user .message__text")).to_have_text(["First"])
    first, second = chat.heard_of("message.send")
    assert {**first, "traceparent": ""} == {**second, "traceparent": ""}
    chat.accept(second)
    page.wait_for_url("**/c/*")
    expect(page.locator(INPUT)).to_have_value("and then")
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(INPUT)).to_have_value("")
    expect(page.locator(".message")).to_have_count(0)
    page.go_back()
    expect(page.locator(INPUT)).to_have_value("and then")
    assert len(chat.heard_of("message.send")) == 2


def test_a_new_chat_does_not_send_what_the_last_one_waits_for(
    chat: ScriptedChat, page: Page
) -> None:
    chat.auto_accept = False
    ask(page, "Still on its way")
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value("")
    page.fill(INPUT, "for another chat")
    chat.accept(chat.heard_of("message.send")[0])
    expect(page.locator(".chat-link", has_text="Still on its way")).to_have_count(1)
    expect(page.locator(INPUT)).to_have_value("for another chat")
    expect(page).to_have_url("/")
    page.reload()
    expect(page.locator(INPUT)).to_have_value("for another chat")
    page.wait_for_timeout(100)
    assert len(chat.heard_of("message.send")) == 1


def accepted_while_another_is_asked_for(chat: ScriptedChat, page: Page) -> tuple[str, str, Route]:
    """The addresses of the chat that was clicked and of the new one, and the reading under way."""
    ask(page, "Hello")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    first, messages = chat.conversation, chat.messages
    assert first is not None
    page.locator(".sidebar__new [data-new-chat]").click()
    chat.auto_accept = False
    ask(page, "Another")
    held: list[Route] = []
    page.route(f"**/api/conversations/{first['id']}", lambda route: held.append(route))
    page.locator(".chat-link a", has_text="Hello").first.click()
    page.wait_for_timeout(100)
    id = "0199a1b2-0000-7000-8000-000000000002"
    chat.conversation = {**first, "id": id, "url": f"/c/{id}", "title": "Another"}
    chat.messages = []
    chat.accept(chat.heard_of("message.send")[-1])
    expect(page.locator(".chat-link", has_text="Another")).to_have_count(1)
    chat.conversation, chat.messages = first, messages
    [route] = held
    return first["url"], f"/c/{id}", route


def test_a_chat_that_is_clicked_while_a_new_one_is_accepted_is_shown_under_its_address(
    chat: ScriptedChat, page: Page
) -> None:
    url, _, route = accepted_while_another_is_asked_for(chat, page)
    route.fallback()
    expect(page.locator(".message--user .message__text")).to_have_text(["Hello"])
    expect(page).to_have_url(url)
    expect(page).to_have_title("Hello · Vitrine")
    expect(page.locator(".chat-link a[aria-current]")).to_have_text("Hello")


def test_where_the_chat_that_is_clicked_cannot_be_read_the_one_before_is_a_click_away(
    chat: ScriptedChat, page: Page
) -> None:
    other, url, route = accepted_while_another_is_asked_for(chat, page)
    route.abort()
    expect(page.locator(".unopened")).to_be_visible()
    expect(page).to_have_url(other)
    expect(page).to_have_title("Hello · Vitrine")
    page.route(f"**/api/conversations/{url[3:]}", lambda route: route.abort())
    page.locator(".chat-link a", has_text="Another").click()
    expect(page.locator(".message--user .message__text")).to_have_text(["Another"])
    expect(page).to_have_url(url)
    expect(page).to_have_title("Another · Vitrine")
    expect(page.locator(".chat-link a[aria-current]")).to_have_text("Another")


def test_each_chat_keeps_its_draft(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.finish("r1")
    page.fill(INPUT, "half a thought")
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(INPUT)).to_have_value("")
    page.go_back()
    expect(page.locator(INPUT)).to_have_value("half a thought")
    page.reload()
    page.goto("/")
    expect(page.locator(INPUT)).to_have_value("")


def test_what_is_sent_offline_goes_out_when_the_line_is_back(
    chat: ScriptedChat, page: Page
) -> None:
    chat.go_away()
    expect(page.locator("status-bar")).to_contain_text("No connection")
    ask(page, "Patience")
    expect(last_answer(page).locator(".phase")).to_contain_text("No connection")
    chat.come_back()
    expect(page.locator("status-bar .status")).to_have_count(0, timeout=15_000)
    assert len(chat.heard_of("message.send")) == 1
    chat.write("r1", "Thank you for waiting.")
    expect(last_answer(page)).to_contain_text("Thank you for waiting.")


def test_a_starter_fills_the_box_and_does_not_send(chat: ScriptedChat, page: Page) -> None:
    page.locator(".starter", has_text="17 * 23").click()
    expect(page.locator(INPUT)).to_have_value("What is 17 * 23?")
    expect(page.locator(".message")).to_have_count(0)


def test_other_models_are_asked_for_more_than_the_built_in_one_can(
    chat: ScriptedChat, page: Page
) -> None:
    starters = page.locator(".starter")
    expect(starters.filter(visible=True)).to_have_count(4)
    larger = [{**each, "default": each["name"] == "org/assistant-8b"} for each in chat.models]
    chat.say({"type": "models.changed", "models": larger})
    expect(starters.filter(has_text="heat pump")).to_be_visible()
    expect(starters.filter(has_text="17 * 23")).to_have_count(0)
    starters.filter(has_text="heat pump").click()
    expect(page.locator(INPUT)).to_have_value("Explain in simple words how a heat pump works.")
    chat.say({"type": "models.changed", "models": chat.models})
    expect(starters.filter(has_text="17 * 23")).to_be_visible()


def test_a_failed_answer_can_be_asked_again(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "Hel")
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    failure = {"code": "x", "message": "The engine died.", "retry_after_s": None}
    chat.event("r1", "failed", **failure, trace_id=trace_id)
    expect(last_answer(page)).to_contain_text("The engine died. What was written is kept.")
    expect(last_answer(page).get_by_text(f"Trace id {trace_id}")).to_be_visible()
    announcer = page.locator("#announcer")
    expect(announcer).to_contain_text("The engine died. What was written is kept.")
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".message--user")).to_have_count(1)
    assert chat.heard_of("answer.regenerate")[0]["answer"] == "a1"
    chat.write("r2", "Hello to you")
    chat.finish("r2")
    expect(last_answer(page)).to_contain_text("Hello to you")


@pytest.mark.parametrize("act", ["regenerate", "continue"])
def test_another_answer_that_is_refused_leaves_the_first(
    chat: ScriptedChat, page: Page, act: str
) -> None:
    ask(page, "Hello")
    chat.write("r1", "As far as")
    chat.event("r1", "finished", reason="length", usage=USAGE, timings=TIMINGS)
    chat.auto_accept = False
    page.fill(INPUT, "typed meanwhile")
    last_answer(page).locator(f"[data-act={act}]").click()
    if act == "regenerate":
        page.locator("#again-menu:popover-open [data-again]").first.click()
    expect(last_answer(page)).to_have_attribute("data-status", "sending")
    refuse(chat, f"answer.{act}")
    expect(page.locator(".toast")).to_contain_text("The queue is full.")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    expect(page.locator(".message--assistant")).to_have_count(1)
    expect(page.locator(INPUT)).to_have_value("typed meanwhile")


def test_the_real_engine_answers(reader: BrowserContext, page: Page) -> None:
    page.goto("/")
    ask(page, "What is 17 * 23?")
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=90_000)
    expect(last_answer(page).locator(".message__took")).to_contain_text("token")
    text = answer_text(page)
    page.reload()
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    assert answer_text(page) == text


def test_a_message_that_is_too_large_comes_back(reader: BrowserContext, page: Page) -> None:
    text = "語" * 350_000  # a bit over 1 MiB
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    page.fill(INPUT, text)
    page.press(INPUT, "Enter")
    expect(page.locator(".toast")).to_contain_text("too long to be sent")
    expect(page.locator(INPUT)).to_have_value(text)
    page.reload()
    expect(page.locator(INPUT)).to_have_value(text)
    expect(page.locator(".message")).to_have_count(0)


def test_a_reload_between_saving_and_accepting_makes_one_message(
    reader: BrowserContext, page: Page
) -> None:
    is_deaf = True

    def connect(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def hear(data: str | bytes) -> None:
            if not is_deaf or "message.accepted" not in str(data):
                socket.send(data)

        server.on_message(hear)

    page.route_web_socket(re.compile(r"/ws/chat/"), connect)
    page.goto("/")
    # By number: the model finds another title once it has answered.
    chats = page.locator(".chat-link")
    one_more = chats.count() + 1
    ask(page, "Saved and not accepted")
    expect(chats).to_have_count(one_more)
    is_deaf = False
    page.reload()
    page.wait_for_url("**/c/*")
    expect(page.locator(".message--user")).to_have_count(1)
    expect(chats).to_have_count(one_more)
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=90_000)

    is_deaf = True
    # The news of it come although its acceptance does not.
    with page.expect_response("**/api/conversations/*"):
        ask(page, "And again")
    is_deaf = False
    page.reload()
    texts = ["Saved and not accepted", "And again"]
    expect(page.locator(".message--user .message__text")).to_have_text(texts)
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=90_000)
    expect(page.locator(".message--user .message__text")).to_have_text(texts)
    expect(page.get_by_role("button", name="Send")).to_be_visible()
