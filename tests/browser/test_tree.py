"""Messages edited, answered again, switched, deleted and restored, by mouse and by keys."""

import re
from collections.abc import Callable
from contextlib import closing
from itertools import count

import pytest
from playwright.sync_api import APIResponse, BrowserContext, Locator, Page, Route, expect

from tests.browser.pages import INPUT, answer_text, ask, cookies_of, last_answer, wait_for
from tests.browser.scripted import ScriptedChat
from tests.sites import Site

_numbers = count(1)
ANSWER_TIMEOUT_MS = 90_000  # the first one waits until the model is loaded


@pytest.fixture
def own_page(vitrine_server: Site, context: BrowserContext) -> Page:
    """A real chat with the built-in model, of somebody with no chats yet."""
    vitrine_server.set_up()
    with closing(vitrine_server.sign_up(f"tree{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    page = context.new_page()
    page.goto(vitrine_server.url)
    return page


def answered(page: Page, text: str) -> str:
    """Ask, and wait for the whole answer; returns it."""
    ask(page, text)
    return ended(page)


def ended(page: Page) -> str:
    expect(last_answer(page)).to_have_attribute(
        "data-status", "complete", timeout=ANSWER_TIMEOUT_MS
    )
    return answer_text(page)


def press(message: Locator, act: str) -> None:
    message.hover()
    message.locator(f"[data-act={act}]").click()


def question(page: Page) -> Locator:
    return page.locator(".message--user").last


def version_of(message: Locator) -> str:
    return message.locator("[data-version]").inner_text()


def test_an_edited_question_is_another_version_and_a_reload_keeps_the_choice(
    own_page: Page,
) -> None:
    page = own_page
    answered(page, "What is 2 + 3?")
    press(question(page), "edit")
    editor = page.locator(".editor__input")
    expect(editor).to_be_focused()
    expect(editor).to_have_value("What is 2 + 3?")
    editor.fill("What is 20 + 30?")
    page.keyboard.press("Control+Enter")
    expect(question(page).locator(".message__text")).to_have_text("What is 20 + 30?")
    assert "50" in ended(page)
    expect(question(page).locator("[data-version]")).to_have_text("2/2")
    press(question(page), "older")
    expect(question(page).locator(".message__text")).to_have_text("What is 2 + 3?")
    expect(question(page).locator("[data-act=older]")).to_be_focused()
    assert "5" in answer_text(page)
    page.wait_for_load_state("networkidle")
    page.reload()
    expect(question(page).locator(".message__text")).to_have_text("What is 2 + 3?")
    expect(question(page).locator("[data-version]")).to_have_text("1/2")


def test_escape_leaves_the_text_as_it_was(own_page: Page) -> None:
    page = own_page
    answered(page, "Hello")
    page.focus(INPUT)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".editor__input")).to_have_value("Hello")
    page.keyboard.type(" there")
    page.keyboard.press("Escape")
    expect(page.locator(".editor")).to_have_count(0)
    expect(question(page).locator(".message__text")).to_have_text("Hello")
    expect(question(page).locator("[data-act=edit]")).to_be_focused()


def test_an_answer_is_written_anew_and_its_versions_are_walked_by_keys(own_page: Page) -> None:
    page = own_page
    answered(page, "Hello")
    press(last_answer(page), "regenerate")
    expect(page.locator("#again-menu [role=menuitem]").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(last_answer(page).locator("[data-version]")).to_have_text("2/2")
    ended(page)
    last_answer(page).locator("[data-copy]").focus()
    page.keyboard.press("Alt+ArrowLeft")
    expect(last_answer(page).locator("[data-version]")).to_have_text("1/2")
    page.keyboard.press("Alt+ArrowRight")
    expect(last_answer(page).locator("[data-version]")).to_have_text("2/2")
    page.keyboard.press("Control+Shift+E")
    expect(last_answer(page).locator("[data-version]")).to_have_text("3/3")
    ended(page)


def test_an_edited_answer_says_so_and_is_what_the_chat_goes_on_from(own_page: Page) -> None:
    page = own_page
    before = answered(page, "Hello")
    press(last_answer(page), "edit")
    page.locator(".editor__input").fill("My own words.")
    page.locator(".editor button", has_text="Save").click()
    expect(last_answer(page).locator(".prose")).to_have_text("My own words.")
    expect(last_answer(page).locator(".message__took")).to_contain_text("edited by you")
    page.reload()
    expect(last_answer(page).locator(".prose")).to_have_text("My own words.")
    press(last_answer(page), "older")
    assert answer_text(page) == before


def test_a_deleted_answer_comes_back_by_undo(own_page: Page) -> None:
    page = own_page
    before = answered(page, "Hello")
    press(last_answer(page), "more")
    page.locator("[data-menu-act=delete]").click()
    expect(page.locator(".message--assistant")).to_have_count(0)
    page.route("**/messages/restore", lambda route: route.abort(), times=1)
    page.locator(".toast__action", has_text="Undo").click()
    expect(page.locator(".toast")).to_contain_text("cannot be reached")
    page.locator(".toast__action", has_text="Try again").click()
    expect(page.locator(".message--assistant")).to_have_count(1)
    assert answer_text(page) == before


def test_a_deletion_asks_what_becomes_of_the_replies(own_page: Page) -> None:
    page = own_page
    answered(page, "Hello")
    press(question(page), "more")
    page.locator("[data-menu-act=delete]").click()
    page.locator("#delete-message button", has_text="Keep replies").click()
    expect(question(page)).to_have_attribute("data-status", "deleted")
    expect(question(page)).to_contain_text("This message was deleted.")
    page.reload()
    expect(question(page)).to_contain_text("This message was deleted.")
    press(last_answer(page), "more")
    page.locator("[data-menu-act=delete]").click()
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator(".welcome")).to_be_visible()


def test_a_branch_opens_as_a_chat_of_its_own(own_page: Page) -> None:
    page = own_page
    answered(page, "Hello")
    first = page.url
    press(last_answer(page), "more")
    page.locator("[data-menu-act=branch]").click()
    page.wait_for_url(lambda url: "/c/" in url and url != first)
    expect(page.locator(".message")).to_have_count(2)
    branch = re.compile("^Branch of ")
    expect(page.locator(".chat-link a[aria-current]")).to_have_text(branch)
    page.go_back()
    expect(page.locator(".chat-link a[aria-current]")).not_to_have_text(branch)


# --- with a script in the server's place ------------------------------------------------------------


def test_a_switch_keeps_the_place_on_the_screen(chat: ScriptedChat, page: Page) -> None:
    for number in (1, 2, 3):
        ask(page, f"Question {number}")
        chat.write(f"r{number}", "A long line of an answer.\n\n" * 20)
        chat.finish(f"r{number}")
    answer = page.locator(".message--assistant").nth(1)
    page.route("**/api/messages/*/choose", lambda route: route.abort())
    answer.hover()
    answer.locator("[data-act=regenerate]").click()
    page.locator("#again-menu [role=menuitem]").first.click()
    chat.write("r4", "Short.")
    chat.finish("r4")
    fresh = page.locator(".message--assistant").nth(1)
    expect(fresh.locator("[data-version]")).to_have_text("2/2")
    before = fresh.bounding_box()
    fresh.locator("[data-act=older]").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".message--assistant")).to_have_count(3)
    after = page.locator(".message--assistant").nth(1).bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 2


def test_a_cut_answer_goes_on(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Go on")
    chat.write("r1", "One, two")
    page.keyboard.press("Escape")
    chat.event("r1", "stopped", chars=8, usage=None, timings=None)
    expect(last_answer(page).locator("[data-act=continue]")).to_be_visible()
    page.focus(INPUT)
    page.keyboard.press("Alt+Enter")
    (frame,) = chat.heard_of("answer.continue")
    assert frame["answer"] == "a1"
    chat.write("r2", "One, two")
    chat.write("r2", ", three", offset=8)
    chat.finish("r2")
    expect(last_answer(page).locator(".prose")).to_have_text("One, two, three")
    expect(last_answer(page).locator("[data-version]")).to_have_text("2/2")


def test_an_answer_whose_process_died_is_marked(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "Hel")
    chat.event("r1", "resumed")
    chat.write("r1", "lo", offset=3)
    chat.finish("r1")
    expect(last_answer(page).locator(".message__took")).to_contain_text("resumed")


def test_what_another_tab_chooses_does_not_take_the_editor_away(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "First")
    chat.finish("r1")
    press(question(page), "edit")
    page.locator(".editor__input").fill("Half a thought")
    assert chat.conversation
    chat.add("user", "From the other tab", None, "u9", chosen=9)
    chat.conversation["version"] = 9
    chat.say({"type": "conversation.changed", "conversation": chat.conversation, "running": []})
    page.wait_for_timeout(300)
    expect(page.locator(".editor__input")).to_have_value("Half a thought")
    page.keyboard.press("Escape")
    expect(question(page).locator(".message__text")).to_have_text("From the other tab")


def test_an_edited_answer_that_is_not_saved_stays_in_the_editor(
    chat: ScriptedChat, page: Page
) -> None:
    page.add_init_script("delete Navigator.prototype.clipboard")  # as over plain http
    page.reload()
    ask(page, "First")
    chat.write("r1", "An answer")
    chat.finish("r1")
    words = {"error": {"code": "unavailable", "message": "Not now."}}
    page.route("**/api/messages/a1/edit", lambda route: route.fulfill(status=503, json=words))
    press(last_answer(page), "edit")
    for _ in range(2):  # the text that was not saved is sent again as it is
        page.locator(".editor__input").fill("A much better answer")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".toast").last).to_contain_text("Not now.")
        page.locator(".toast").last.get_by_role("button", name="Dismiss").click()
        expect(page.locator(".toast")).to_have_count(0)
        expect(page.locator(".editor__input")).to_have_value("A much better answer")
    page.locator(".editor__input").press("Control+Enter")
    expect(page.locator(".toast")).to_have_count(1)
    expect(page.locator(".editor__input")).to_be_focused()
    page.get_by_role("button", name="Copy text").click()
    expect(page.locator(".toast")).to_have_count(0)
    page.locator(INPUT).focus()
    page.keyboard.press("Control+V")
    expect(page.locator(INPUT)).to_have_value("A much better answer")
    page.unroute("**/api/messages/a1/edit")
    better = chat.add("assistant", "A much better answer", "u1", "a2", edited=True, chosen=9)
    saved = {"conversation": chat.conversation, "message": better}
    page.route("**/api/messages/a1/edit", lambda route: route.fulfill(json=saved))
    page.locator(".editor__input").press("Control+Enter")
    expect(last_answer(page).locator(".prose")).to_have_text("A much better answer")
    expect(page.locator(".editor")).to_have_count(0)


def test_an_edited_question_is_not_lost_before_the_server_has_it(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "First")
    chat.finish("r1")
    chat.auto_accept = False
    press(question(page), "edit")
    page.locator(".editor__input").fill("First, but better")
    page.keyboard.press("Control+Enter")
    expect(question(page)).to_contain_text("but better")
    page.goto("/")  # the page anew; the script has no page for the chat's own address
    page.locator("status-bar:defined").wait_for(state="attached")
    chat.say({"type": "conversation.changed", "conversation": chat.conversation, "running": []})
    chat.messages[1]["status"] = "complete"
    page.get_by_role("link", name="First", exact=True).click()
    expect(question(page)).to_contain_text("but better")
    expect(page.locator(".message--user")).to_have_count(1)
    first, second = chat.heard_of("message.send")[1:]
    assert (second["client_id"], second["parent"]) == (first["client_id"], None)
    page.locator(".sidebar__new [data-new-chat]").click()
    refused = {"code": "busy", "message": "Full.", "client_id": first["client_id"]}
    chat.say({"type": "error", **refused})
    expect(page.locator(".toast")).to_contain_text("Full.")
    page.get_by_role("link", name="First", exact=True).click()
    expect(page.locator(".editor__input")).to_have_value("First, but better")
    expect(page.locator(INPUT)).to_have_value("")
    page.wait_for_timeout(100)
    assert len(chat.heard_of("message.send")) == 3


def test_a_refused_edit_comes_back_into_its_editor(chat: ScriptedChat, page: Page) -> None:
    ask(page, "First")
    chat.finish("r1")
    ask(page, "Second")
    chat.finish("r2")
    chat.auto_accept = False
    press(page.locator(".message--user").first, "edit")
    page.locator(".editor__input").fill("First, but better")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".message--user")).to_have_count(1)
    sent = chat.heard_of("message.send")[-1]
    refused = {"code": "busy", "message": "Full.", "client_id": sent["client_id"]}
    chat.say({"type": "error", **refused})
    expect(page.locator(".message--user")).to_have_count(2)
    editor = page.locator(".message--user").first.locator(".editor__input")
    expect(editor).to_have_value("First, but better")
    expect(editor).to_be_focused()
    expect(page.locator(INPUT)).to_have_value("")
    editor.press("Control+Enter")
    expect(page.locator(".message--user")).to_have_count(1)
    assert chat.heard_of("message.send")[-1]["parent"] == sent["parent"]


def leave_by_a_click(page: Page) -> None:
    page.locator(".sidebar__new [data-new-chat]").click()
    expect(page.locator(".editor")).to_have_count(0)
    page.get_by_role("link", name="First", exact=True).click()


def leave_by_going_back(page: Page) -> None:
    page.go_back()
    expect(page.locator(".editor")).to_have_count(0)
    page.go_forward()


def open_it_around_the_editor(page: Page) -> None:
    """As a search result in the same chat does."""
    page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")


@pytest.mark.parametrize(
    "leave", [leave_by_a_click, leave_by_going_back, open_it_around_the_editor]
)
def test_what_is_written_in_an_editor_is_there_when_its_chat_is_shown_again(
    chat: ScriptedChat, page: Page, leave: Callable[[Page], None]
) -> None:
    ask(page, "First")
    chat.write("r1", "An answer")
    chat.finish("r1")
    page.wait_for_url("**/c/*")
    chat.messages[1] |= {"status": "complete", "parts": [{"type": "text", "text": "An answer"}]}
    press(question(page), "edit")
    page.locator(".editor__input").fill("Half a thought")
    leave(page)
    editor = page.locator(".editor__input")
    expect(editor).to_have_value("Half a thought")
    expect(editor).to_be_focused()
    editor.press("Control+Enter")
    expect(question(page)).to_contain_text("Half a thought")
    assert chat.heard_of("message.send")[-1]["parent"] is None
    wait_for(page, "Object.values(localStorage).every((one) => !one.includes('Half a'))")


def test_an_editor_survives_a_reload_until_it_is_left(own_page: Page) -> None:
    page = own_page
    answered(page, "What is 2 + 3?")
    press(last_answer(page), "edit")
    page.locator(".editor__input").fill("Five, I think.")
    page.reload()
    expect(last_answer(page).locator(".editor__input")).to_have_value("Five, I think.")
    page.keyboard.press("Escape")
    expect(page.locator(".editor")).to_have_count(0)
    page.reload()
    page.locator("status-bar:defined").wait_for(state="attached")
    expect(last_answer(page)).to_contain_text("5")
    expect(page.locator(".editor")).to_have_count(0)


def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Go on with the keyboard until something has the focus."""
    for _ in range(40):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {selector}")


def test_the_keyboard_alone_walks_deletes_and_takes_back(own_page: Page) -> None:
    page = own_page
    page.focus(INPUT)
    page.keyboard.type("Hello")
    page.keyboard.press("Enter")
    ended(page)
    page.keyboard.press("Control+Shift+E")
    expect(last_answer(page).locator("[data-version]")).to_have_text("2/2")
    ended(page)
    tab_to(page, ".message--assistant [data-act=more]", "Shift+Tab")
    page.keyboard.press("Alt+ArrowLeft")
    expect(last_answer(page).locator("[data-version]")).to_have_text("1/2")
    tab_to(page, ".message--assistant [data-act=more]")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("Enter")
    expect(last_answer(page).locator(".versions")).to_be_hidden()
    tab_to(page, ".toast__action")
    page.keyboard.press("Enter")
    expect(last_answer(page).locator("[data-version]")).to_have_text(re.compile("./2"))


def test_a_change_waits_for_the_one_before(own_page: Page) -> None:
    """Else it would name a version of the chat that the one before has made an old one."""
    page = own_page
    ask(page, "Hello")
    ended(page)
    page.keyboard.press("Control+Shift+E")
    expect(last_answer(page).locator("[data-version]")).to_have_text("2/2")
    ended(page)
    held: list[tuple[Route, APIResponse]] = []
    # The server has done it, and its answer takes its time.
    page.route("**/api/messages/*/choose", lambda route: held.append((route, route.fetch())))
    last_answer(page).get_by_role("button", name="Version before").click()
    expect(last_answer(page).locator("[data-version]")).to_have_text("1/2")
    last_answer(page).locator("[data-act=more]").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.wait_for_timeout(500)
    ((choosing, answer),) = held
    choosing.fulfill(response=answer)
    expect(last_answer(page).locator(".versions")).to_be_hidden()
    expect(page.locator(".toast")).to_contain_text("The message is deleted.")
