"""Rating an answer, copying it for other places, having it read aloud."""

from contextlib import closing
from itertools import count

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.pages import ask, cookies_of, last_answer, wait_for
from tests.browser.scripted import ScriptedChat
from tests.sites import Site

_numbers = count(1)
# The voices of a device are its own: what is spoken is written down here.
VOICE = """
  window.__spoken = [];
  const voice = {
    speak(utterance) { window.__spoken.push(utterance.text); },
    cancel() { window.__spoken.push("(stop)"); },
    pause() {},
    resume() {},
    addEventListener() {},
    getVoices() { return [{ lang: "en-GB", localService: true }]; },
  };
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
  Object.defineProperty(window, "speechSynthesis", { value: voice });
"""


@pytest.fixture
def own_page(vitrine_server: Site, context: BrowserContext) -> Page:
    """A real chat with the built-in model."""
    vitrine_server.set_up()
    with closing(vitrine_server.sign_up(f"rater{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    page = context.new_page()
    page.add_init_script(VOICE)
    page.goto(vitrine_server.url)
    ask(page, "Hello")
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=90_000)
    return page


def button(page: Page, act: str) -> Locator:
    return last_answer(page).locator(f"[data-act={act}]")


def choose(page: Page, act: str) -> None:
    last_answer(page).hover()
    button(page, "more").click()
    page.locator(f"[data-menu-act={act}]").click()


def test_a_rating_stays_and_is_taken_back(own_page: Page) -> None:
    page = own_page
    last_answer(page).hover()
    button(page, "good").click()
    expect(button(page, "good")).to_have_attribute("aria-pressed", "true")
    expect(button(page, "good")).to_be_focused()
    page.reload()
    expect(button(page, "good")).to_have_attribute("aria-pressed", "true")
    button(page, "good").click()
    expect(button(page, "good")).to_have_attribute("aria-pressed", "false")
    page.reload()
    expect(button(page, "good")).to_have_attribute("aria-pressed", "false")


def test_what_is_wrong_with_a_bad_answer_is_asked_and_kept(own_page: Page) -> None:
    page = own_page
    last_answer(page).hover()
    button(page, "bad").click()
    dialog = page.locator("#bad-answer")
    expect(dialog).to_be_visible()
    expect(button(page, "bad")).to_have_attribute("aria-pressed", "true")
    dialog.get_by_label("Too long").check(force=True)
    dialog.get_by_label("In your words").fill("On and on.")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog).to_be_hidden()
    message = last_answer(page).get_attribute("data-message")
    chat = page.url.rsplit("/", 1)[-1]
    shown = page.request.get(f"/api/conversations/{chat}").json()["messages"]
    feedback = next(each["feedback"] for each in shown if each["id"] == message)
    assert (feedback["reasons"], feedback["comment"]) == (["too_long"], "On and on.")
    # The next one begins empty.
    button(page, "good").click()
    expect(button(page, "good")).to_have_attribute("aria-pressed", "true")
    button(page, "bad").click()
    expect(dialog.get_by_label("In your words")).to_have_value("")
    page.keyboard.press("Escape")
    expect(button(page, "bad")).to_be_focused()


def test_an_answer_is_read_aloud_and_stopped(own_page: Page) -> None:
    page = own_page
    choose(page, "read")
    wait_for(page, "window.__spoken.length > 0")
    spoken = page.evaluate("window.__spoken")
    assert " ".join(spoken) == last_answer(page).locator(".prose").inner_text().strip()
    last_answer(page).hover()
    button(page, "more").click()
    item = page.locator("[data-menu-act=read]")
    expect(item).to_have_text("Stop reading")
    item.click()
    wait_for(page, "window.__spoken.at(-1) === '(stop)'")


def test_a_text_is_copied_plain_and_with_formatting(chat: ScriptedChat) -> None:
    page = chat.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, "Show me")
    chat.write("r1", "**Bold** and `code`:\n\n- one\n- two\n")
    chat.finish("r1")
    choose(page, "copy-plain")
    wait_for(page, "navigator.clipboard.readText().then((text) => text.includes('Bold'))")
    plain = page.evaluate("navigator.clipboard.readText()")
    assert "**" not in plain
    assert "two" in plain
    choose(page, "copy-rich")
    wait_for(
        page,
        "navigator.clipboard.read().then(([item]) => item.types.includes('text/html'))",
    )
    html = page.evaluate(
        "navigator.clipboard.read().then(([i]) => i.getType('text/html')).then((b) => b.text())"
    )
    assert "<strong>Bold</strong>" in html
    assert "<li>two</li>" in html
    page.locator(".toast").last.get_by_role("button", name="Dismiss").click()
    page.evaluate("(document.execCommand = () => false) && null")
    choose(page, "copy-rich")
    expect(page.locator(".toast").last).to_contain_text("did not allow copying")
