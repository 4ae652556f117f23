"""Several models answer one question in columns, until one of them is chosen."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import INPUT, ask
from tests.browser.scripted import ScriptedChat

PICKER = "model-picker .picker"


def columns(page: Page) -> Locator:
    return page.locator(".beside > .message")


def test_models_answer_in_columns_and_the_chat_goes_on_from_the_chosen_one(
    chat: ScriptedChat, page: Page
) -> None:
    page.click(PICKER)
    page.click("[data-beside='org/assistant-8b']")
    expect(page.locator("[data-beside='org/assistant-8b']")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(PICKER)).to_have_text("Vitrine small+ 1")
    expect(page.locator(PICKER)).to_have_accessible_name("Models: Vitrine small, Assistant 8B")
    ask(page, "Who are you?")
    assert chat.heard_of("message.send")[0]["beside"] == ["org/assistant-8b"]
    expect(columns(page)).to_have_count(2)
    chat.write("r1", "I am small.")
    chat.write("r2", "I am larger.")
    chat.finish("r1")
    expect(page.locator(".composer__send")).to_have_attribute("aria-label", "Stop")
    chat.finish("r2")
    expect(page.locator(".composer__send")).to_have_attribute("aria-label", "Send")
    expect(columns(page).locator(".message__parts")).to_have_text(["I am small.", "I am larger."])
    page.route(
        "**/api/messages/a2/choose", lambda route: route.fulfill(json={"conversation": None})
    )
    page.fill(INPUT, "And then?")
    page.press(INPUT, "Enter")
    expect(page.locator("#composer-hint")).to_contain_text("Choose one of the answers")
    expect(page.locator(".message--user")).to_have_count(1)
    columns(page).last.locator("[data-act=choose]").click()
    expect(page.locator(".turn").first.locator(".beside")).to_have_count(0)
    answers = page.locator(".message--assistant")
    expect(answers.first.locator(".message__parts")).to_have_text("I am larger.")
    expect(answers.first.locator("[data-version]")).to_have_text("2/2")
    expect(page.locator(".message--user").last).to_contain_text("And then?")
    expect(page.locator("#composer-hint")).not_to_contain_text("Choose one of the answers")
    assert chat.heard_of("message.send")[1]["parent"] == "a2"


def test_what_is_done_with_one_answer_outlives_news_of_the_chat(
    chat: ScriptedChat, page: Page
) -> None:
    page.click(PICKER)
    page.click("[data-beside='org/assistant-8b']")
    page.keyboard.press("Escape")
    ask(page, "Who are you?")
    for run in ("r1", "r2"):
        chat.write(run, "So and so.")
        chat.finish(run)
    choose = columns(page).last.locator("[data-act=choose]")
    choose.focus()
    page.evaluate(
        """() => {
          window.moves = 0;
          const watch = { childList: true };
          const observer = new MutationObserver((moves) => (window.moves += moves.length));
          observer.observe(document.querySelector("message-list"), watch);
          observer.observe(document.querySelector(".turn"), watch);
        }"""
    )
    assert chat.conversation is not None
    known = {**chat.conversation, "title": "Who they are", "version": 9}
    chat.say({"type": "conversation.changed", "conversation": known})
    expect(page).to_have_title("Who they are · Vitrine")
    expect(choose).to_be_focused()
    assert page.evaluate("window.moves") == 0


def test_one_stop_stops_all_of_them(chat: ScriptedChat, page: Page) -> None:
    page.click(PICKER)
    page.click("[data-beside='org/assistant-8b']")
    page.keyboard.press("Escape")
    ask(page, "Write on")
    chat.write("r1", "One ")
    chat.write("r2", "Two ")
    expect(columns(page).locator(".message__parts")).to_have_text(["One", "Two"])
    page.keyboard.press("Escape")
    assert sorted(frame["run"] for frame in chat.heard_of("run.stop")) == ["r1", "r2"]


def test_the_picker_is_walked_by_keys(chat: ScriptedChat, page: Page) -> None:
    page.focus(PICKER)
    page.keyboard.press("Enter")
    expect(page.locator("[data-model='vitrine-small']")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    beside = page.locator("[data-beside='org/assistant-8b']")
    expect(beside).to_be_focused()
    page.keyboard.press("Space")
    expect(beside).to_have_attribute("aria-checked", "true")
    expect(beside).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".picker__title")).to_have_text("Assistant 8B")
