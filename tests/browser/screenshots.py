"""Pictures of the pages of a running site: `python -m tests.browser.screenshots OUT_DIR`.

VITRINE_URL (default http://127.0.0.1:8000), VITRINE_EMAIL and VITRINE_PASSWORD name the site and an
account of it, LANGUAGE the browser's language. What the engine would say is played by a script, so
the pictures are the same on every machine. Needs Chromium; CHROMIUM names its executable.
"""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import LAUNCH
from tests.browser.scripted import USAGE, ScriptedChat, meter_of, tokens_of

URL = os.environ.get("VITRINE_URL", "http://127.0.0.1:8000")
EMAIL = os.environ.get("VITRINE_EMAIL", "admin@example.org")
LANGUAGE = os.environ.get("LANGUAGE", "en")
PASSWORD = os.environ.get("VITRINE_PASSWORD", "correct horse battery")
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
ANSWER = (Path(__file__).parent / "answer.md").read_text()
RICH_ANSWER = (Path(__file__).parent / "rich-answer.md").read_text()
QUESTION = "How does a KV cache keep a long chat fast?"
PAGE = """<!doctype html>
<title>Breathe</title>
<style>
  body { margin: 0; height: 100vh; display: grid; place-content: center; gap: 2rem; text-align: center;
         font: 1.1rem system-ui; background: #f3f6f4; color: #234; }
  div { width: 9rem; height: 9rem; border-radius: 50%; background: #4a8; margin: auto;
        animation: in 8s infinite; }
  @keyframes in { 50% { transform: scale(1.6); } }
</style>
<h1>Breathe</h1>
<div></div>
<p>Four seconds in, four seconds out.</p>
"""
DAWN = (
    "Dawn over three rows of soft hills, a pale sun behind mist, in the manner of a quiet woodcut"
)
STEPS = [
    "What is 17 * 23?",
    "Explain it in one paragraph, for somebody who has never heard of attention, and keep the numbers.",
]


def dawn(width: int, height: int) -> bytes:
    """A picture as a model might draw it."""
    image = Image.linear_gradient("L").resize((width, height))
    image = Image.composite(
        Image.new("RGB", image.size, "#f3b98a"), Image.new("RGB", image.size, "#6f8fb5"), image
    )
    pen = ImageDraw.Draw(image)
    x, y, r = width * 0.62, height * 0.42, width * 0.07
    pen.ellipse((x - r, y - r, x + r, y + r), fill="#fff1d0")
    for row, colour in enumerate(("#8a7f9c", "#5d5f7c", "#33415a")):
        top = height * (0.5 + 0.14 * row)
        for hill in range(-1, 4):
            left = width * (hill * 0.36 + 0.12 * row)
            pen.ellipse((left, top, left + width * 0.6, top + height), fill=colour)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def empty(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)


def loading(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    loading = {**chat.models[0], "state": "loading", "progress": 0.42, "detail": "reading weights"}
    chat.say({"type": "models.changed", "models": [loading, *chat.models[1:]]})


def reading(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, QUESTION)
    chat.phase("r1", "prefill", done=6210, total=8900, cached=5100)


def streaming(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, QUESTION)
    chat.event("r1", "started", model="vitrine-small", revision="1", seed=1, turn=0)
    chat.write("r1", ANSWER[: ANSWER.index("    parent, hashes") + 24])
    chat.phase("r1", "decode", tokens=140, tokens_per_s=61.3)


def long_chat(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, STEPS[0])
    chat.event("r1", "tool_call", id="1", name="calculator", arguments='{"expression": "17 * 23"}')
    chat.event("r1", "tool_result", id="1", content="391", is_error=False, took_ms=2.0)
    chat.write("r1", "17 * 23 is **391**.")
    chat.finish("r1")
    send(page, QUESTION)
    chat.write(
        "r2", "The question is about memory that is read again at every step.", part="reasoning"
    )
    chat.write("r2", ANSWER)
    chat.finish("r2")
    page.wait_for_selector(".hljs-keyword")


def rich_answer(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, "Explain attention, with a formula and a picture.")
    chat.write("r1", "Start from the *cost* of one step.\n\nThen the picture.", part="reasoning")
    chat.write("r1", RICH_ANSWER)
    chat.finish("r1")
    page.wait_for_selector(".diagram img:visible")
    page.wait_for_selector(".hljs-keyword")
    page.wait_for_selector(".katex")


def rich_answer_top(page: Page, chat: ScriptedChat) -> None:
    rich_answer(page, chat)
    page.evaluate("document.querySelector('#scroller').scrollTo(0, 0)")


def rich_answer_writing(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, "Explain attention, with a formula and a picture.")
    chat.event("r1", "started", model="vitrine-small", revision="1", seed=1, turn=0)
    chat.write("r1", "Start from the *cost* of one step.\n\nThen the picture.", part="reasoning")
    chat.write("r1", RICH_ANSWER[: RICH_ANSWER.index("right) V")])
    chat.phase("r1", "decode", tokens=140, tokens_per_s=61.3)
    page.wait_for_selector(".katex")


def _asks_to_draw(page: Page, chat: ScriptedChat, size: str) -> dict[str, str]:
    page.goto(URL)
    send(page, "Draw dawn over hills, please.")
    asked = {"prompt": DAWN, "size": size}
    chat.event("r1", "tool_call", id="1", name="create_image", arguments=json.dumps(asked))
    return asked


def _draws(page: Page, chat: ScriptedChat, size: str) -> None:
    """A picture of dawn over hills, and the next one on its way."""
    page.route("**/api/documents/*/pages/1?*", lambda route: route.fulfill(
        content_type="image/png", body=dawn(*(900, 600) if size == "landscape" else (600, 900))
    ))  # fmt: skip
    asked = _asks_to_draw(page, chat, size)
    width, height = (1536, 1024) if size == "landscape" else (1024, 1536)
    drawn = {"picture": str(UUID(int=1)), "name": "dawn.png", **asked, "model": "painter",
             "width": width, "height": height}  # fmt: skip
    chat.event(
        "r1", "tool_result", id="1", content=json.dumps(drawn), is_error=False, took_ms=9_000.0
    )
    chat.write("r1", "Here is dawn over the hills. Shall there be a house as well?")
    chat.finish("r1")
    page.wait_for_selector(".made__picture")


def picture(page: Page, chat: ScriptedChat) -> None:
    _draws(page, chat, "landscape")


def picture_tall(page: Page, chat: ScriptedChat) -> None:
    _draws(page, chat, "portrait")
    page.locator(".made summary").click()


def picture_large(page: Page, chat: ScriptedChat) -> None:
    _draws(page, chat, "landscape")
    page.locator("a.made__frame").click()
    page.wait_for_selector("dialog.large-picture[open]")


def picture_coming(page: Page, chat: ScriptedChat) -> None:
    _asks_to_draw(page, chat, "landscape")
    chat.phase("r1", "tool", detail="create_image")
    page.wait_for_selector(".made[data-state=drawing]")


def picture_failed(page: Page, chat: ScriptedChat) -> None:
    _asks_to_draw(page, chat, "landscape")
    spent = (
        "error: Your 200,000 tokens for today are used up. There are new ones on 2026-11-30 (UTC)."
    )
    chat.event("r1", "tool_result", id="1", content=spent, is_error=True, took_ms=20.0)
    chat.write("r1", "I cannot draw any more today: your tokens are used up.")
    chat.finish("r1")
    page.wait_for_selector(".made__failed")


def long_chat_top(page: Page, chat: ScriptedChat) -> None:
    long_chat(page, chat)
    page.evaluate("document.querySelector('#scroller').scrollTo(0, 0)")


def trace(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, QUESTION)
    chat.write("r1", ANSWER[:900])
    chat.finish("r1")
    page.locator(".message__took[data-trace]").last.click()
    page.wait_for_selector(".waterfall")


def artifact(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    for number, text in enumerate((PAGE, PAGE.replace("Breathe", "Breathe slowly")), 1):
        send(page, "A page that helps me to breathe" if number == 1 else "More slowly, please.")
        chat.write(f"r{number}", f"A page without anything else:\n\n```html\n{text}```\n\nOpen it.")
        chat.finish(f"r{number}")
    page.locator("[data-open-beside]").nth(1).click(force=True)
    page.frame_locator("side-panel iframe").locator("h1").wait_for()


def artifact_changes(page: Page, chat: ScriptedChat) -> None:
    artifact(page, chat)
    page.click("[data-side=changes]")


def artifact_code(page: Page, chat: ScriptedChat) -> None:
    artifact(page, chat)
    page.click("[data-side=code]")


def tokens(page: Page, chat: ScriptedChat) -> None:
    chat.tokens = tokens_of(ANSWER[:900])
    trace(page, chat)
    page.click("[data-show-tokens]")
    page.locator(".tokens__text .token").nth(21).hover()


def meter(page: Page, chat: ScriptedChat) -> None:
    chat.meter = meter_of(1900, 260)
    long_chat(page, chat)
    page.fill("#composer-input", STEPS[1])
    page.locator("token-meter").wait_for()
    page.wait_for_timeout(900)
    page.locator(".meter").hover()


def meter_alarming(page: Page, chat: ScriptedChat) -> None:
    chat.meter = meter_of(2400, 260, left_out={"num_messages": 4, "is_new": True})
    long_chat(page, chat)
    page.fill("#composer-input", STEPS[1])
    page.wait_for_timeout(900)
    page.evaluate(
        """document.querySelector("chat-sidebar").setWarmth({
          "0199a1b2-0000-7000-8000-000000000001": {tokens: 2970, cached: 2944}})"""
    )


def versions(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, QUESTION)
    chat.write("r1", ANSWER[:300])
    chat.event("r1", "stopped", chars=180, usage=USAGE, timings=None)
    page.keyboard.press("Control+Shift+E")
    chat.write("r2", ANSWER[:420])
    chat.finish("r2")
    page.locator(".message--assistant [data-act=regenerate]").click()


def editing(page: Page, chat: ScriptedChat) -> None:
    long_chat(page, chat)
    question = page.locator(".message--user").last
    question.hover()
    question.locator("[data-act=edit]").click()
    page.wait_for_selector(".editor__input")


def delete_message(page: Page, chat: ScriptedChat) -> None:
    long_chat(page, chat)
    question = page.locator(".message--user").first
    question.scroll_into_view_if_needed()
    question.hover()
    question.locator("[data-act=more]").click()
    page.click("[data-menu-act=delete]")


def side_by_side(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    page.click("model-picker .picker")
    page.click("[data-beside='org/assistant-8b']")
    page.keyboard.press("Escape")
    send(page, QUESTION)
    chat.write("r1", ANSWER[:700])
    chat.finish("r1")
    chat.write("r2", ANSWER[300:900])
    chat.phase("r2", "decode", tokens=140, tokens_per_s=12.4)


def beside_menu(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    page.click("model-picker .picker")
    page.click("[data-beside='org/assistant-8b']")


def queue(page: Page, chat: ScriptedChat) -> None:
    streaming(page, chat)
    for text in (STEPS[0], STEPS[1]):
        page.fill("#composer-input", text)
        page.click(".composer__queue")
    page.fill("#composer-input", "And a third one")


def temporary(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    page.click("[data-temporary]")


def temporary_chat(page: Page, chat: ScriptedChat) -> None:
    chat.on_send = None
    temporary(page, chat)
    page.fill("#composer-input", QUESTION)
    page.click(".composer__send")
    page.wait_for_timeout(200)
    chat.accept_temporary(ANSWER[:700])
    page.wait_for_timeout(300)


def long_question(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, STEPS[1])
    chat.phase("r1", "queued", position=3, wait_s=4.0)


def failed(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, STEPS[0])
    chat.write("r1", "17 times 23 is")
    message = "The engine ran out of memory."
    chat.event("r1", "failed", code="out_of_memory", message=message, retry_after_s=None)


def stopped(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, QUESTION)
    chat.write("r1", ANSWER[:300])
    chat.event("r1", "stopped", chars=180, usage=USAGE, timings=None)


def offline(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_selector("message-list:defined")
    page.wait_for_timeout(300)
    chat.go_away()
    page.wait_for_timeout(1500)


def models(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    page.click("model-picker .picker")


def sidebar(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    fill_sidebar(page)
    if page.viewport_size and page.viewport_size["width"] < 768:
        page.click(".bar [data-toggle-sidebar]")
    page.hover(".chat-link[data-conversation] >> nth=2")


def shortcuts(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    page.keyboard.press("Control+/")


def menus(page: Page, chat: ScriptedChat) -> None:
    sidebar(page, chat)
    page.click(".person")


def delete(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    send(page, QUESTION)
    chat.finish("r1")
    page.keyboard.press("Control+Shift+Backspace")


def chat_menu(page: Page, chat: ScriptedChat) -> None:
    sidebar(page, chat)
    page.click(".chat-link[data-conversation] >> nth=2 >> [data-menu]")


def search(page: Page, chat: ScriptedChat) -> None:
    page.goto(URL)
    page.wait_for_timeout(300)
    page.keyboard.press("Control+k")
    page.wait_for_timeout(500)


def settings(page: Page, chat: ScriptedChat) -> None:
    page.goto(f"{URL}/settings/")


def settings_found(page: Page, chat: ScriptedChat) -> None:
    page.goto(f"{URL}/settings/")
    page.fill("settings-search input", "key")


def missing(page: Page, chat: ScriptedChat) -> None:
    page.goto(f"{URL}/c/0199a1b2-0000-7000-8000-00000000dead")


def sign_in_page(page: Page, chat: ScriptedChat) -> None:
    page.context.clear_cookies()
    page.goto(f"{URL}/accounts/login/")


def sign_up_page(page: Page, chat: ScriptedChat) -> None:
    page.context.clear_cookies()
    page.goto(f"{URL}/accounts/signup/")


SCENES: list[Callable[[Page, ScriptedChat], None]] = [
    empty, loading, reading, streaming, long_chat, long_chat_top, trace, tokens, meter, meter_alarming,
    artifact, artifact_changes, artifact_code,
    rich_answer, rich_answer_top,
    rich_answer_writing, long_question, failed, stopped,
    picture, picture_tall, picture_large, picture_coming, picture_failed,
    versions, editing, delete_message, side_by_side, beside_menu, queue, temporary, temporary_chat,
    offline, models, sidebar, chat_menu, search, shortcuts, menus, delete, settings,
    settings_found, missing,
    sign_in_page, sign_up_page,
]  # fmt: skip


def send(page: Page, text: str) -> None:
    """Type and send as a person would."""
    count = page.locator(".message--user").count()
    page.wait_for_selector("chat-composer:defined")
    page.fill("#composer-input", text)
    page.click(".composer__send")  # Enter means a new line on a phone
    page.locator(".message--user").nth(count).wait_for()
    page.wait_for_timeout(100)


def fill_sidebar(page: Page) -> None:
    titles = [
        "KV caches, explained", "17 times 23", "Names for a cat", "Plan for the garden in spring",
        "A very long title that does not fit into the width of the sidebar",
        "Étude sur l’hôtel à Zürich", "مرحبا بالعالم", "東京の天気",
    ]  # fmt: skip
    page.evaluate(
        """titles => {
          const sidebar = document.querySelector("chat-sidebar");
          const chats = titles.map((title, i) => ({
            id: `c${i}`, url: `/c/c${i}`, title, version: 1, running: i === 1 ? ["r"] : [],
            folder: i === 5 ? "f1" : null, pinned: i === 3, archived: false, tags: [],
            updated_at: new Date(Date.now() - [0, 0, 1, 1, 3, 4, 40, 400][i] * 864e5 - i).toISOString(),
          }));
          const folders = ["Travel", "Work"].map((name, i) => ({ id: `f${i}`, name, version: 1 }));
          sidebar.show({ pinned: [], folders, items: chats, next: null });
          sidebar.setCurrent("c0");
        }""",
        titles,
    )


def take(browser: Browser, out: Path, only: list[str]) -> None:
    state = browser.new_context()
    page = state.new_page()
    page.goto(f"{URL}/accounts/login/")
    page.fill("input[name=login]", EMAIL)
    page.fill("input[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url(f"{URL}/")
    cookies = state.storage_state()
    for scene in SCENES:
        if only and scene.__name__ not in only:
            continue
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(
                    storage_state=cookies,
                    locale=LANGUAGE,
                    viewport={"width": width, "height": height},
                    color_scheme=scheme,  # type: ignore[arg-type]
                    device_scale_factor=1 if size == "wide" else 2,
                    has_touch=size == "phone",
                    is_mobile=size == "phone",
                )
                page = context.new_page()
                page.on("pageerror", lambda error: print("page error:", error.stack))
                page.on("console", lambda m: m.type == "error" and print("console:", m.text))
                scene(page, ScriptedChat(page))
                page.wait_for_timeout(400)
                page.screenshot(path=out / f"{scene.__name__}-{size}-{scheme}.png")
                context.close()


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.browser.screenshots OUT_DIR [SCENE ...]")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**LAUNCH)
        take(browser, out, sys.argv[2:])


if __name__ == "__main__":
    main()
