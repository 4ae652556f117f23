"""Speaking in place of typing where a model of the site writes it down: Chromium hears a sound file in
place of a microphone, and the server in the test is the model's."""

import struct
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserType, Locator, Page, expect

from tests.browser.pages import INPUT, cookies_of, own_page, wait_for
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.inference.tiny_models import make_whisper
from tests.sites import Site, SiteMaker
from tests.sounds import wav
from tests.upstream_server import UpstreamServer, status, stream

SAID = "the cat is on the roof."


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"ear={server.url}?kind=transcription,far={server.url}"
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far") as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def hearing(
    browser_type: BrowserType,
    browser_type_launch_args: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Browser]:
    """A browser with a microphone that hears a tone, and whose user allows it."""
    sound = tmp_path_factory.mktemp("sounds") / "tone.wav"
    sound.write_bytes(wav(5.0, 48_000))
    args = [
        *browser_type_launch_args["args"],
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={sound}",
    ]
    with browser_type.launch(**{**browser_type_launch_args, "args": args}) as browser:
        yield browser


@pytest.fixture(scope="module")
def cookies(site: Site) -> Iterator[list[Any]]:
    with closing(site.sign_up("Speaker")) as visitor:
        yield cookies_of(visitor, site.url)


@pytest.fixture
def speaking(
    hearing: Browser, site: Site, server: UpstreamServer, cookies: list[Any]
) -> Iterator[Page]:
    server.answers = [status(200, {"text": f" {SAID} "})]
    server.asked.clear()
    with hearing.new_context(base_url=site.url, service_workers="block") as context:
        context.add_cookies(cookies)
        page = context.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/")
        page.locator("chat-composer:defined").wait_for()
        yield page
        assert not troubles


def begin(page: Page) -> Locator:
    """Returns the bar that listens."""
    page.get_by_role("button", name="Dictate").click()
    bar = page.get_by_role("group", name="Dictation")
    expect(bar).to_contain_text("Listening")
    return bar


def heard(page: Page) -> None:
    """Until the microphone was, a little."""
    level = "Number(getComputedStyle(document.querySelector('.dictation__level')).getPropertyValue"
    wait_for(page, f"{level}('--level')) > 0.5")
    expect(page.locator(".dictation__time")).to_have_text("0:01")


def samples_of(form: bytes) -> "array[int]":
    """Of the WAV file in a form: 16 kHz, one channel, 16 bits."""
    sound = form[form.index(b"RIFF") :]
    assert struct.unpack("<HHI", sound[20:28]) == (1, 1, 16_000)
    length = struct.unpack("<I", sound[40:44])[0]
    return array("h", sound[44 : 44 + length])


def test_what_is_said_lands_at_the_caret(speaking: Page, server: UpstreamServer) -> None:
    speaking.fill(INPUT, "Dear Ada, Yours, Bob")
    speaking.evaluate(f"document.querySelector('{INPUT}').setSelectionRange(10, 10)")
    bar = begin(speaking)
    heard(speaking)
    bar.get_by_role("button", name="Done").press("Enter")
    expect(speaking.locator(INPUT)).to_have_value(f"Dear Ada, {SAID} Yours, Bob")
    expect(speaking.locator(INPUT)).to_be_focused()
    expect(bar).to_have_count(0)
    expect(speaking.locator(".message--user")).to_have_count(0)  # never sent by itself
    (asked,) = server.asked
    assert asked.path == "/v1/audio/transcriptions"
    samples = samples_of(asked.raw)
    assert len(samples) > 16_000 * 0.8
    assert max(samples) > 3_000
    speaking.keyboard.press("Control+z")
    expect(speaking.locator(INPUT)).to_have_value("Dear Ada, Yours, Bob")


def test_escape_leaves_all_as_it_was(speaking: Page, server: UpstreamServer) -> None:
    speaking.fill(INPUT, "Hello")
    bar = begin(speaking)
    speaking.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(speaking.locator(INPUT)).to_have_value("Hello")
    expect(speaking.locator(INPUT)).to_be_focused()
    server.answers = [stream(hangs_s=5.0)]
    bar = begin(speaking)
    heard(speaking)
    bar.get_by_role("button", name="Done").click()
    expect(bar).to_contain_text("Writing it down")
    speaking.keyboard.press("Escape")  # gives up what is on its way
    expect(bar).to_have_count(0)
    expect(speaking.locator(INPUT)).to_have_value("Hello")


def test_what_could_not_be_written_down_can_be_tried_again(
    speaking: Page, server: UpstreamServer
) -> None:
    speaking.fill(INPUT, "Hello")
    speaking.route("**/api/transcriptions", lambda route: route.abort())
    bar = begin(speaking)
    heard(speaking)
    bar.get_by_role("button", name="Done").click()
    expect(bar).to_contain_text("The server cannot be reached. What you said is kept")
    speaking.unroute("**/api/transcriptions")
    server.answers = [status(400, {"error": {"message": "no"}}), status(200, {"text": SAID})]
    speaking.route("**/api/transcriptions", lambda route: route.fulfill(status=503, json={}))
    bar.get_by_role("button", name="Try again").click()
    expect(bar).to_contain_text("could not be written down now")
    speaking.unroute("**/api/transcriptions")
    bar.get_by_role("button", name="Try again").click()
    expect(bar).to_contain_text("The recording could not be read.")
    bar.get_by_role("button", name="Close").click()
    expect(speaking.locator(INPUT)).to_have_value("Hello")
    bar = begin(speaking)
    heard(speaking)
    bar.get_by_role("button", name="Done").click()
    expect(speaking.locator(INPUT)).to_have_value(f"Hello {SAID}")


def test_silence_is_told(speaking: Page, server: UpstreamServer) -> None:
    server.answers = [status(200, {"text": " "})]
    bar = begin(speaking)
    heard(speaking)
    bar.get_by_role("button", name="Done").click()
    expect(bar).to_contain_text("Nothing was heard.")
    bar.get_by_role("button", name="Close").click()
    expect(bar).to_have_count(0)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("NotAllowedError", "may not use the microphone"),
        ("NotFoundError", "No microphone was found"),
        ("NotReadableError", "could not be used"),
    ],
)
def test_no_microphone_is_told(speaking: Page, error: str, words: str) -> None:
    refuse = f"async () => {{ throw new DOMException('', '{error}'); }}"
    speaking.evaluate(f"void (navigator.mediaDevices.getUserMedia = {refuse})")
    speaking.fill(INPUT, "Hello")
    speaking.get_by_role("button", name="Dictate").click()
    bar = speaking.get_by_role("group", name="Dictation")
    expect(bar).to_contain_text(words)
    speaking.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(speaking.locator(INPUT)).to_have_value("Hello")


def test_it_ends_by_itself_before_it_is_too_long(speaking: Page) -> None:
    speaking.evaluate("window.now = performance.now.bind(performance); window.late = 0;"
                      "void (performance.now = () => window.now() + window.late)")  # fmt: skip
    bar = begin(speaking)
    heard(speaking)
    speaking.evaluate("window.late = 569_500")
    expect(bar).to_contain_text("for half a minute more")
    speaking.evaluate("window.late = 600_000")
    expect(speaking.locator(INPUT)).to_have_value(SAID)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_each_state_is_accessible(
    speaking: Page, server: UpstreamServer, theme: Any, width: int, tmp_path: Path
) -> None:
    speaking.emulate_media(color_scheme=theme, reduced_motion="reduce")
    speaking.set_viewport_size({"width": width, "height": 720})
    server.answers = [stream(hangs_s=5.0)]
    bar = begin(speaking)
    heard(speaking)
    expect_no_faults(speaking)
    expect_no_sideways_scrolling(speaking)
    bar.get_by_role("button", name="Done").click()
    expect(bar).to_contain_text("Writing it down")
    expect(bar.get_by_role("button", name="Cancel")).to_be_focused()
    expect_no_faults(speaking)
    speaking.keyboard.press("Escape")
    speaking.route("**/api/transcriptions", lambda route: route.abort())
    begin(speaking)
    heard(speaking)
    bar.get_by_role("button", name="Done").click()
    expect(bar).to_contain_text("kept until you close this")
    expect_no_faults(speaking)
    expect_no_sideways_scrolling(speaking)


def test_a_whisper_of_our_own_hears_what_the_browser_records(
    hearing: Browser, make_site: SiteMaker, tmp_path: Path
) -> None:
    whisper = make_whisper(tmp_path / "ear")
    with make_site(VITRINE_MODELS=f"ear={whisper}", VITRINE_DTYPE="float32") as site:
        site.set_up().close()
        with own_page(site, hearing, "Speaker") as page:
            page.goto("/")
            page.locator("chat-composer:defined").wait_for()
            bar = begin(page)
            heard(page)
            with page.expect_response("**/api/transcriptions", timeout=60_000) as told:
                bar.get_by_role("button", name="Done").click()
            assert told.value.status == 200
            found = told.value.json()
            assert 0.8 < found["duration_s"] < 20
            if text := found["text"].strip():  # its weights are random, and may say nothing
                expect(page.locator(INPUT)).to_have_value(text)
