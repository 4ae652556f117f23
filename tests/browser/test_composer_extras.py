"""What the message box does beside sending: who answers, long texts, what other apps share, sizes."""

import re
from contextlib import closing
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.pages import INPUT, ask, wait_for
from tests.browser.scripted import ScriptedChat

LONG = "Minutes of the fourth of May\n" + "All were there and spoke at length. " * 150
_PASTE = """
  (text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    const input = document.querySelector("#composer-input");
    input.focus();
    const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    return input.dispatchEvent(event);
  }
"""


def paste(page: Page, text: str) -> bool:
    """Whether the browser was left to put it into the box."""
    return bool(page.evaluate(_PASTE, text))


def chips(page: Page) -> Locator:
    return page.locator(".picked > li")


def test_an_at_sign_calls_who_answers_next(chat: ScriptedChat) -> None:
    page = chat.page
    other = {**chat.models[0], "name": "other", "title": "Otherwise", "default": False}
    chat.say({"type": "models.changed", "models": [chat.models[0], other]})
    page.fill(INPUT, "")
    page.type(INPUT, "mail ada@example.org and @oth")
    menu = page.locator("#model-menu")
    expect(menu.locator("[role=option]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".picker__title")).to_have_text("Otherwise")
    expect(page.locator(INPUT)).to_have_value("mail ada@example.org and ")
    expect(menu).to_be_hidden()
    page.keyboard.press("Enter")
    wait_for(page, "document.querySelectorAll('.message--user').length === 1")
    assert chat.heard_of("message.send")[-1]["model"] == "other"


def test_a_long_text_becomes_a_file_and_can_be_put_into_the_message(chat: ScriptedChat) -> None:
    page = chat.page
    assert paste(page, "short"), "a short text is the browser's"
    assert not paste(page, LONG)
    expect(chips(page)).to_have_count(1)
    expect(chips(page)).to_contain_text("Minutes of the fourth of May.txt")
    expect(page.locator(INPUT)).to_have_value("")
    page.locator(".toast").get_by_role("button", name="Put it into the message").click()
    expect(chips(page)).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value(LONG)


_PROGRESS = """
  () => {
    const { picked } = document.querySelector("chat-composer");
    const [file] = picked.attachments;
    const chip = document.querySelector(".picked > li");
    const steps = [
      { progress: 0.25 }, { progress: 0.5 }, { progress: 1 }, { state: "reading", progress: null },
      { progress: 0.5 }, { state: "ready", progress: 1 },
    ];
    return steps.map((step) => {
      picked.change(file, step);
      const number = chip.querySelector("[aria-hidden=true].numbers");
      return [chip.querySelector("[role=status]").textContent, number.hidden ? "" : number.textContent];
    });
  }
"""


def test_of_a_file_on_its_way_states_are_heard_and_numbers_only_seen(chat: ScriptedChat) -> None:
    page = chat.page
    page.evaluate("document.querySelector('chat-composer').picked.attach('minutes.txt') && null")
    expect(chips(page)).to_have_count(1)
    heard_and_seen = [
        ["uploading…", "25%"],
        ["uploading…", "50%"],
        ["uploading…", ""],
        ["reading…", ""],
        ["reading…", ""],
        ["", ""],
    ]
    assert page.evaluate(_PROGRESS) == heard_and_seen


def test_with_shift_or_by_choice_a_long_text_stays_text(chat: ScriptedChat) -> None:
    page = chat.page
    page.locator(INPUT).focus()
    page.keyboard.press("Shift+V")
    assert paste(page, LONG)
    page.evaluate("localStorage.setItem('vitrine.long-paste', 'text')")
    assert paste(page, LONG)
    expect(chips(page)).to_have_count(0)


def test_in_a_temporary_chat_a_long_text_stays_text(chat: ScriptedChat) -> None:
    page = chat.page
    uploads: list[str] = []
    page.on("request", lambda request: "attach" in request.url and uploads.append(request.url))
    page.locator("[data-temporary]").click()
    expect(page.locator(".temporary")).to_be_visible()
    assert paste(page, LONG), "it is the browser's"
    page.wait_for_timeout(300)
    expect(chips(page)).to_have_count(0)
    assert uploads == []


def test_what_another_app_shares_waits_in_the_box(reader: BrowserContext, page: Page) -> None:
    page.goto("/?title=News&text=Look%20at%20this&url=https%3A%2F%2Fexample.org%2Fa")
    expect(page.locator(INPUT)).to_have_value("News\nLook at this\nhttps://example.org/a")
    assert page.url.endswith("/"), "the address does not keep it"
    expect(page.locator(".message")).to_have_count(0)
    manifest = page.request.get("/manifest.webmanifest").json()
    assert manifest["share_target"]["params"] == {"title": "title", "text": "text", "url": "url"}


def test_sizes_are_chosen_and_apply_before_the_first_paint(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/settings/")
    normal = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    page.get_by_label("Very large").check(force=True)
    page.get_by_label("Compact").check(force=True)
    page.goto("/")
    root = page.locator("html")
    expect(root).to_have_attribute("data-text-size", "larger")
    expect(root).to_have_attribute("data-density", "compact")
    large = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    assert large == normal * 1.25
    scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    page.set_viewport_size({"width": 390, "height": 844})
    assert not page.evaluate(scrolls), "nothing sticks out on a phone"
    page.goto("/settings/")
    page.get_by_label("Normal").check(force=True)
    page.get_by_label("Generous").check(force=True)
    expect(root).not_to_have_attribute("data-text-size", re.compile("."))


def test_a_tool_is_allowed_by_the_keyboard(chat: ScriptedChat) -> None:
    page = chat.page
    for keys, allow in (("Control+Alt+Backspace", False), ("Control+Alt+Enter", True)):
        ask(page, "Do it")
        run = f"r{len(chat.heard_of('message.send'))}"
        chat.event(run, "tool_call", id="c1", name="mailer", arguments="{}")
        chat.phase(run, "approval", detail="c1")
        expect(page.locator("[data-act=allow]:visible")).to_have_count(1)
        asked = page.locator("#announcer p", has_text="May the tool be used")
        expect(asked.last).to_contain_text("Ctrl + Alt + Enter allows it, Ctrl + Alt + ⌫ does not.")
        page.keyboard.press(keys)
        wait_for(page, "true")
        assert chat.heard_of("run.decide")[-1]["allow"] is allow
        chat.finish(run)
        expect(page.locator(".message--assistant").last).to_have_attribute(
            "data-status", "complete"
        )


def test_on_a_phone_no_keyboard_comes_up_over_the_answer(
    browser: Browser, base_url: str, reader_cookies: list[Any]
) -> None:
    phone: Any = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with closing(browser.new_context(base_url=base_url, service_workers="block", **phone)) as own:
        own.add_cookies(reader_cookies)
        chat = ScriptedChat(page := own.new_page())
        page.goto("/")
        page.locator("status-bar:defined").wait_for(state="attached")
        page.tap(".picker")
        page.tap("[data-model='org/assistant-8b']")
        expect(page.locator(".picker")).to_contain_text("Assistant 8B")
        expect(page.locator(INPUT)).not_to_be_focused()
        page.fill(INPUT, "Tell me more")
        page.tap(".composer__send")
        chat.write("r1", "More")
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(500)  # sooner it would be a double press
        page.tap(".composer__send")
        page.wait_for_timeout(200)
        assert chat.heard_of("run.stop")
        expect(page.locator(INPUT)).not_to_be_focused()
