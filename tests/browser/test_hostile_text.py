"""Text from people, models and tools stays text, wherever it is shown and however it is cut."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import ask, last_answer
from tests.browser.scripted import ScriptedChat

ATTACKS: list[str] = json.loads((Path(__file__).parent.parent / "attacks.json").read_text())
FORBIDDEN = (
    "script, img, iframe, form:not(.composer), style, base, meta, object, embed, svg:not(.icon),"
    " [onerror], [onload], [href^='javascript:' i]"
)


def expect_only_text(page: Page) -> None:
    # The page fixture also asserts: nothing ran, nobody was asked, no policy was broken.
    assert page.locator("message-list").locator(FORBIDDEN).count() == 0
    assert page.locator("chat-sidebar").locator("script, img, iframe").count() == 0


@pytest.mark.parametrize("size", [1, 7, 4000])
def test_a_hostile_answer_is_shown_as_text_however_it_arrives(
    chat: ScriptedChat, page: Page, size: int
) -> None:
    text = "\n\n".join(ATTACKS)
    ask(page, "Show me")
    for start in range(0, len(text), size):
        chat.write("r1", text[start : start + size], offset=start)
    expect(last_answer(page)).to_contain_text("clobber")
    expect_only_text(page)
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    expect_only_text(page)


def test_hostile_questions_thoughts_tools_and_errors_are_text(
    chat: ScriptedChat, page: Page
) -> None:
    text = "\n".join(ATTACKS)
    ask(page, text)
    chat.write("r1", text, part="reasoning")
    chat.event("r1", "tool_call", id="1", name="<img src=x>", arguments=json.dumps({"x": text}))
    chat.event("r1", "tool_result", id="1", content=text, is_error=True, took_ms=1.0)
    chat.event("r1", "failed", code="x", message=ATTACKS[1], retry_after_s=None)
    expect(last_answer(page)).to_have_attribute("data-status", "failed")
    for summary in page.locator("summary").all():
        summary.click()
    expect_only_text(page)


def test_hostile_titles_and_models_are_text(chat: ScriptedChat, page: Page) -> None:
    hostile = {"title": ATTACKS[1], "description": ATTACKS[2], "detail": ATTACKS[0]}
    chat.say({"type": "models.changed", "models": [{**chat.models[0], **hostile}]})
    ask(page, ATTACKS[1])
    chat.finish("r1")
    page.click("model-picker .picker")
    expect(page.locator(".model__about")).to_have_text(ATTACKS[2])
    expect(page.locator(".chat-link a[aria-current]")).to_contain_text("onerror")
    expect_only_text(page)
    assert page.locator("model-picker img, model-picker svg:not(.icon)").count() == 0


def test_hostile_text_is_text_after_a_reload_too(reader: BrowserContext, page: Page) -> None:
    """The server renders it first, then the modules; nothing of ours stands in between."""
    page.goto("/")
    text = "\n".join(ATTACKS).replace("\t", " ")
    ask(page, text)
    page.wait_for_url("**/c/*")
    page.reload()
    expect(page.locator(".message--user").first).to_contain_text("clobber")
    expect_only_text(page)


def test_links_name_their_host_and_images_wait_for_a_click(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Links")
    chat.write("r1", "[your bank](https://раураl.com/a) ![a cat](https://tracker.invalid/cat.png)")
    chat.finish("r1")
    link = last_answer(page).get_by_role("link", name="your bank")
    expect(link).to_have_attribute("data-host", "xn--l-7sba6dbr.com")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(link).to_have_attribute("target", "_blank")
    expect(last_answer(page).get_by_role("link", name="Image: a cat")).to_be_visible()


def test_hidden_direction_marks_show_in_code(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Code")
    chat.write("r1", "```js\nif (admin\u202e) {}\n```\n")
    chat.finish("r1")
    expect(page.locator("code .bidi-mark")).to_have_attribute("data-name", "U+202E")
    assert page.locator("pre code").inner_text() == "if (admin) {}\n"
