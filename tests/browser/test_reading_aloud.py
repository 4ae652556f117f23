"""Answers that are read aloud by a speech model of the site, or else by the device."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer, wait_for
from tests.browser.scripted import ScriptedChat
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.chat.test_openai_speech import spoken
from tests.sites import Site, SiteMaker
from tests.sounds import wav
from tests.upstream_server import UpstreamServer, status

ANSWER = """# The cat

It sits on the **mat** [1]. It is `fine`, and $x^2$ is a formula:

$$\\int_0^1 f$$

```python
print("never read")
```

| A | B |
|---|---|
| one | two |

- And the end.
"""
SAID = "The cat It sits on the mat. It is fine, and is a formula: A, B one, two And the end."
DEVICE = """
  window.__spoken = [];
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
  const voices = [
    { lang: "en-US", localService: false, name: "far away" },
    { lang: "de-DE", localService: true, name: "here" },
  ];
  const synthesis = {
    speak(utterance) { window.__spoken.push([utterance.voice.name, utterance.text]); },
    cancel() {}, pause() {}, resume() {}, addEventListener() {},
    getVoices: () => voices,
  };
  Object.defineProperty(window, "speechSynthesis", { value: synthesis });
"""


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"far={server.url},voice={server.url}?kind=speech"
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far") as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def cookies(site: Site) -> Iterator[list[Any]]:
    with closing(site.sign_up("Listener")) as visitor:
        yield cookies_of(visitor, site.url)


@pytest.fixture
def listening(
    browser: Browser, site: Site, server: UpstreamServer, cookies: list[Any]
) -> Iterator[Page]:
    """With an answer on the page."""
    server.answers = [spoken(wav(2.0), kind="audio/wav")]
    server.asked.clear()
    with browser.new_context(base_url=site.url, service_workers="block") as context:
        context.add_cookies(cookies)
        page = context.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        answered(page, ANSWER)
        yield page
        assert not troubles


def answered(page: Page, text: str) -> None:
    chat = ScriptedChat(page)
    page.goto("/")
    ask(page, "Where is the cat?")
    chat.write("r1", text)
    chat.finish("r1")


def menu_item(page: Page) -> Locator:
    last_answer(page).hover()
    last_answer(page).locator("[data-act=more]").click()
    return page.locator("[data-menu-act=read]")


def begin(page: Page) -> Locator:
    """Returns the bar that is shown meanwhile."""
    item = menu_item(page)
    expect(item).to_have_text("Read aloud")
    item.click()
    bar = page.get_by_role("group", name="Read aloud")
    expect(bar).to_contain_text("Reading aloud")
    return bar


def test_a_model_reads_it_to_its_end(listening: Page, server: UpstreamServer) -> None:
    server.answers = [spoken(wav(0.2), kind="audio/wav")]
    bar = begin(listening)
    expect(bar).to_have_count(0)
    said = [asked.body["input"] for asked in server.asked]
    assert " ".join(said) == SAID
    assert all(asked.path == "/v1/audio/speech" for asked in server.asked)
    expect(menu_item(listening)).to_have_text("Read aloud")


def test_it_is_paused_and_stopped(listening: Page, server: UpstreamServer) -> None:
    bar = begin(listening)
    bar.get_by_role("button", name="Pause").click()
    expect(bar).to_contain_text("Reading is paused")
    listening.wait_for_timeout(2_500)  # longer than the first piece sounds
    assert len(server.asked) <= 2, "the next one is asked for, and no further one"
    bar.get_by_role("button", name="Go on").click()
    expect(bar).to_contain_text("Reading aloud")
    bar.get_by_role("button", name="Stop reading").press("Enter")
    expect(bar).to_have_count(0)
    expect(listening.locator(INPUT)).to_be_focused()
    begin(listening)
    item = menu_item(listening)
    expect(item).to_have_text("Stop reading")
    item.click()
    expect(bar).to_have_count(0)
    bar = begin(listening)
    bar.get_by_role("button", name="Pause").focus()
    listening.keyboard.press("Escape")
    expect(bar).to_have_count(0)


def test_a_voice_that_is_away_is_told(listening: Page, server: UpstreamServer) -> None:
    server.answers = [status(400, {"error": {"message": "no such voice"}})]
    menu_item(listening).click()
    expect(listening.locator(".toast").last).to_contain_text("the voice cannot be reached")
    expect(listening.get_by_role("group", name="Read aloud")).to_have_count(0)


def test_what_is_code_alone_is_not_read(
    browser: Browser, site: Site, server: UpstreamServer, cookies: list[Any]
) -> None:
    server.asked.clear()
    with browser.new_context(base_url=site.url, service_workers="block") as context:
        context.add_cookies(cookies)
        page = context.new_page()
        answered(page, "```\nprint(1)\n```\n")
        menu_item(page).click()
        expect(page.locator(".toast").last).to_contain_text("nothing in it that can be read")
    assert not server.asked


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_the_bar_is_accessible(listening: Page, theme: Any, width: int) -> None:
    listening.emulate_media(color_scheme=theme)
    listening.set_viewport_size({"width": width, "height": 720})
    bar = begin(listening)
    bar.get_by_role("button", name="Pause").click()
    expect(bar).to_contain_text("Reading is paused")
    expect_no_faults(listening)
    expect_no_sideways_scrolling(listening)


# --- the device -----------------------------------------------------------------------------------


def test_no_text_leaves_the_device_for_a_voice(chat: ScriptedChat, page: Page) -> None:
    """The site of other tests has no speech model."""
    page.evaluate(f"() => {{ {DEVICE} }}")
    ask(page, "Where is the cat?")
    chat.write("r1", "The cat sits on the mat, and it is fine.")
    chat.finish("r1")
    menu_item(page).click()
    expect(page.locator(".toast").last).to_contain_text("no voice of its own for the language")
    ask(page, "And in German?")
    chat.write("r2", "Die Katze sitzt auf der Matte. Das ist nicht zu ändern.")
    chat.finish("r2")
    menu_item(page).click()
    wait_for(page, "window.__spoken.length === 2")
    assert page.evaluate("window.__spoken") == [
        ["here", "Die Katze sitzt auf der Matte."],
        ["here", "Das ist nicht zu ändern."],
    ]


def test_without_a_voice_nothing_is_offered(chat: ScriptedChat, page: Page) -> None:
    page.evaluate(f"() => {{ {DEVICE} voices.splice(1); }}")  # the one far away is left
    ask(page, "Where is the cat?")
    chat.write("r1", "The cat sits on the mat, and it is fine.")
    chat.finish("r1")
    expect(menu_item(page)).to_be_hidden()
