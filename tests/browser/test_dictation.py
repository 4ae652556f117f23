"""Speaking in place of typing: the recognition and the microphone are played, the rest is real."""

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.pages import INPUT, wait_for
from tests.browser.scripted import ScriptedChat
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling

# A tone in place of a voice, through the browser's own audio graph.
ENGINE = """
  window.engines = [];
  window.SpeechRecognition = class {
    constructor() { window.engines.push(this); this.calls = []; }
    start() { this.calls.push("start"); }
    stop() { this.calls.push("stop"); setTimeout(() => this.onend()); }
    abort() {
      this.calls.push("abort");
      this.onerror({ error: "aborted" });
      setTimeout(() => this.onend());
    }
  };
  window.hear = (...results) => window.engines.at(-1).onresult({
    results: results.map(([transcript, isFinal]) => ({ isFinal, 0: { transcript } })),
  });
  window.tracks = [];
  navigator.mediaDevices.getUserMedia = async () => {
    const context = new AudioContext();
    const tone = context.createOscillator();
    const out = context.createMediaStreamDestination();
    tone.connect(out);
    tone.start();
    window.tracks.push(...out.stream.getTracks());
    return out.stream;
  };
"""


@pytest.fixture
def speaking(reader: BrowserContext, page: Page) -> Page:
    page.add_init_script(ENGINE)
    ScriptedChat(page)
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    return page


def begin(page: Page) -> Locator:
    """Agreed to, if it was not before; returns the bar that listens."""
    num_engines = page.evaluate("engines.length")
    page.get_by_role("button", name="Dictate").first.click()
    bar = page.get_by_role("group", name="Dictation")
    if page.evaluate("localStorage.getItem('vitrine.dictation')") is None:
        expect(bar).to_contain_text("may send what you say to its maker")
        bar.get_by_role("button", name="Dictate").click()
    expect(bar).to_contain_text("Listening")
    wait_for(page, f"engines.length === {num_engines + 1}")
    return bar


def test_what_is_said_lands_at_the_caret(speaking: Page) -> None:
    speaking.fill(INPUT, "Dear Ada, Yours, Bob")
    speaking.evaluate(f"document.querySelector('{INPUT}').setSelectionRange(10, 10)")
    bar = begin(speaking)
    assert speaking.evaluate("engines.at(-1).lang") == "en"
    wait_for(speaking, "Number(getComputedStyle(document.querySelector('.dictation__level'))"
                       ".getPropertyValue('--level')) > 0.5")  # fmt: skip
    speaking.evaluate("hear(['the cat', true], [' is on', false])")
    expect(bar.locator(".dictation__words")).to_have_text("the cat is on")
    expect(bar.locator(".dictation__interim")).to_have_text("is on")
    expect(speaking.locator(INPUT)).to_have_value("Dear Ada, Yours, Bob")
    speaking.evaluate("hear(['the cat', true], [' is on the roof.', true])")
    bar.get_by_role("button", name="Done").press("Enter")
    expect(speaking.locator(INPUT)).to_have_value("Dear Ada, the cat is on the roof. Yours, Bob")
    expect(speaking.locator(INPUT)).to_be_focused()
    expect(bar).to_have_count(0)
    assert speaking.evaluate("tracks.every((track) => track.readyState === 'ended')")
    speaking.keyboard.press("Control+z")
    expect(speaking.locator(INPUT)).to_have_value("Dear Ada, Yours, Bob")


def test_cancel_and_escape_leave_all_as_it_was(speaking: Page) -> None:
    speaking.fill(INPUT, "Hello")
    for leave in ("Cancel", "Escape"):
        bar = begin(speaking)
        speaking.evaluate("hear(['never mind', true])")
        if leave == "Cancel":
            bar.get_by_role("button", name="Cancel").click()
        else:
            speaking.keyboard.press("Escape")
        expect(bar).to_have_count(0)
        expect(speaking.locator(INPUT)).to_have_value("Hello")
        expect(speaking.locator(INPUT)).to_be_focused()
    wait_for(speaking, "tracks.every((track) => track.readyState === 'ended')")


def test_nothing_is_sent_before_it_is_agreed_to(speaking: Page) -> None:
    speaking.get_by_role("button", name="Dictate").click()
    bar = speaking.get_by_role("group", name="Dictation")
    bar.get_by_role("button", name="Cancel").click()
    expect(bar).to_have_count(0)
    assert speaking.evaluate("engines.length + tracks.length") == 0
    begin(speaking)  # asks again
    speaking.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    speaking.evaluate("SpeechRecognition.available = async () => 'available'")
    speaking.evaluate("localStorage.removeItem('vitrine.dictation')")
    speaking.get_by_role("button", name="Dictate").click()  # nothing leaves the device: no question
    expect(bar).to_contain_text("Listening")
    assert speaking.evaluate("engines.at(-1).processLocally") is True


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("not-allowed", "may not use the microphone"),
        ("network", "cannot be reached"),
        ("something-new", "ended by itself"),
    ],
)
def test_a_problem_is_told_and_loses_nothing(speaking: Page, error: str, words: str) -> None:
    bar = begin(speaking)
    speaking.evaluate("hear(['Half a sentence', true])")
    speaking.evaluate(f"engines.at(-1).onerror({{ error: '{error}' }}); engines.at(-1).onend()")
    expect(bar).to_contain_text(words)
    expect(speaking.locator(INPUT)).to_have_value("Half a sentence")
    bar.get_by_role("button", name="Close").click()
    expect(bar).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_the_bar_is_accessible(speaking: Page, theme: str, width: int) -> None:
    speaking.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    speaking.set_viewport_size({"width": width, "height": 720})
    begin(speaking)
    speaking.evaluate("hear(['A long sentence, '.repeat(20), true], ['and more', false])")
    expect_no_faults(speaking)
    expect_no_sideways_scrolling(speaking)


def test_a_browser_without_recognition_has_no_button(reader: BrowserContext, page: Page) -> None:
    page.add_init_script("delete window.SpeechRecognition; delete window.webkitSpeechRecognition;")
    ScriptedChat(page)
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    expect(page.locator(".composer__dictate")).to_be_hidden()
