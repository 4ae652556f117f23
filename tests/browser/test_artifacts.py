"""A block of code beside the chat, in its versions: as what it is, as code, and as what has changed."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import INPUT, ask
from tests.browser.scripted import ScriptedChat

LINES = [
    "<!doctype html>",
    "<title>Counter</title>",
    "<h1>Count</h1>",
    "<button>More</button><output>0</output>",
    "<p>Press it.</p>",
]
SECOND = [*LINES[:2], "<h1>Count twice</h1>", *LINES[3:], "<p>Again.</p>"]
FAILS = ["<!doctype html>", "<title>Counter</title>", "<script>", "  missing();", "</script>"]


def fenced(lines: list[str], language: str = "html") -> str:
    return f"Here:\n\n```{language}\n" + "\n".join(lines) + "\n```\n"


def answer(chat: ScriptedChat, page: Page, text: str) -> Locator:
    """The last block of a finished answer."""
    ask(page, "Make it")
    run = f"r{page.locator('.message--assistant').count()}"
    message = page.locator(f"[data-message=a{run[1:]}]")
    chat.write(run, text)
    chat.finish(run)
    expect(message).to_have_attribute("data-status", "complete")
    return message.locator(".code").last


def open_beside(block: Locator) -> Locator:
    block.hover()
    block.get_by_role("button", name="Open beside").click()
    return block.page.locator("side-panel")


def code_of(panel: Locator) -> str:
    return panel.locator(".code code").inner_text().rstrip("\n")


def test_a_page_is_shown_beside_and_as_code(chat: ScriptedChat, page: Page) -> None:
    panel = open_beside(answer(chat, page, fenced(LINES)))
    expect(panel.get_by_role("heading")).to_have_text("Counter")
    frame = panel.frame_locator("iframe.preview__page")
    expect(frame.get_by_role("heading")).to_have_text("Count")
    expect(panel.get_by_role("group", name="Versions")).to_be_hidden()
    assert panel.bounding_box()["width"] > 500  # type: ignore[index]
    panel.get_by_role("button", name="Code", exact=True).click()
    assert code_of(panel) == "\n".join(LINES)
    assert panel.locator("iframe").count() == 0
    panel.get_by_role("button", name="Copy").click()
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert page.locator("iframe").count() == 0


def test_each_answer_brings_the_next_version(chat: ScriptedChat, page: Page) -> None:
    first = answer(chat, page, fenced(LINES))
    answer(chat, page, fenced(["x = 1", "y = 2", "z = 3"], "python"))
    answer(chat, page, fenced(SECOND))
    panel = open_beside(first)
    expect(panel.locator(".numbers")).to_have_text("1/2")
    expect(panel.get_by_role("button", name="Changes")).to_be_hidden()
    panel.get_by_role("button", name="Version after").click()
    expect(panel.locator(".numbers")).to_have_text("2/2")
    expect(panel.frame_locator("iframe").get_by_role("heading")).to_have_text("Count twice")
    panel.get_by_role("button", name="Changes").click()
    expect(panel.locator("del")).to_have_text(["<h1>Count</h1>"])
    expect(panel.locator("ins")).to_have_text(["<h1>Count twice</h1>", "<p>Again.</p>"])
    expect(panel.get_by_text("Lines since the version before: +2, −1")).to_be_visible()
    panel.get_by_role("button", name="Version before").click()
    assert code_of(panel) == "\n".join(LINES), "the first one has changed nothing"


def test_whoever_looks_at_the_newest_sees_the_next_one_written(
    chat: ScriptedChat, page: Page
) -> None:
    panel = open_beside(answer(chat, page, fenced(LINES)))
    expect(panel.frame_locator("iframe").get_by_role("heading")).to_have_text("Count")
    ask(page, "Twice")
    text = fenced(SECOND)
    middle = text.index("<p>Press")
    chat.write("r2", text[:middle])
    expect(panel.locator(".numbers")).to_have_text("2/2")
    expect(panel.get_by_text("Being written")).to_be_visible()
    expect(panel.locator(".code")).to_contain_text("Count twice")
    chat.write("r2", text[middle:], offset=middle)
    chat.finish("r2")
    expect(panel.frame_locator("iframe").get_by_role("heading")).to_have_text("Count twice")
    expect(panel.get_by_text("Being written")).to_have_count(0)


def test_whoever_looks_at_an_older_one_stays(chat: ScriptedChat, page: Page) -> None:
    first = answer(chat, page, fenced(LINES))
    answer(chat, page, fenced(SECOND))
    panel = open_beside(first)
    expect(panel.locator(".numbers")).to_have_text("1/2")
    answer(chat, page, fenced([*SECOND, "<p>Third.</p>"]))
    expect(panel.locator(".numbers")).to_have_text("1/3")
    expect(panel.frame_locator("iframe").get_by_role("heading")).to_have_text("Count")


def test_a_fault_of_a_page_is_told_and_asked_to_be_mended(chat: ScriptedChat, page: Page) -> None:
    panel = open_beside(answer(chat, page, fenced(FAILS)))
    fault = "The page fails in line 4: Uncaught ReferenceError: missing is not defined"
    expect(panel.locator(".preview__note")).to_contain_text(fault)
    page.fill(INPUT, "And make it blue.")
    panel.get_by_role("button", name="Ask to mend it").click()
    words = f"And make it blue.\n\n{fault}. Please mend it, and write the whole page again."
    expect(page.locator(INPUT)).to_have_value(words)
    assert [frame["text"] for frame in chat.heard_of("message.send")] == ["Make it"]


def test_a_fault_is_told_where_the_code_was_as_well(chat: ScriptedChat, page: Page) -> None:
    block = answer(chat, page, fenced(["<script>Promise.reject(new Error('late'))</script>"]))
    block.get_by_role("button", name="Preview").click()
    expect(block.locator(".preview__note")).to_contain_text("The page fails: late")
    block.get_by_role("button", name="Ask to mend it").click()
    expect(page.locator(INPUT)).to_have_value(
        "The page fails: late. Please mend it, and write the whole page again."
    )


def test_what_a_page_says_of_itself_is_only_words(chat: ScriptedChat, page: Page) -> None:
    """It may call itself failed, in any words, and as often as it likes."""
    said = '{type: "failed", message: "<img src=x onerror=alert(1)>" + "a".repeat(1e6), line: "x"}'
    hostile = f"<script>for (let i = 0; i < 50; i++) parent.postMessage({said}, '*')</script>"
    panel = open_beside(answer(chat, page, fenced([hostile])))
    note = panel.locator(".preview__note")
    expect(note).to_contain_text("The page fails: <img src=x onerror=alert(1)>aaa")
    assert len(note.inner_text()) < 400
    assert note.locator("img").count() == 0


@pytest.mark.parametrize("language", ["python", "", "constructor"])
def test_any_code_can_stand_beside(chat: ScriptedChat, page: Page, language: str) -> None:
    panel = open_beside(answer(chat, page, fenced(["one", "two"], language)))
    assert code_of(panel) == "one\ntwo"
    expect(panel.get_by_role("heading")).to_have_text(language or "Code")
    expect(panel.get_by_role("button", name="Preview")).to_be_hidden()


def test_it_goes_with_its_chat_and_its_branch(chat: ScriptedChat, page: Page) -> None:
    block = answer(chat, page, fenced(LINES))
    panel = open_beside(block)
    page.get_by_role("link", name="New chat").first.click()
    expect(panel).to_be_hidden()
    expect(page.locator(".message")).to_have_count(0)


def test_the_keyboard_reaches_all_of_it(chat: ScriptedChat, page: Page) -> None:
    answer(chat, page, fenced(LINES))
    answer(chat, page, fenced(SECOND))
    opener = page.locator(".message--assistant [data-open-beside]").last
    opener.focus()
    page.keyboard.press("Enter")
    panel = page.locator("side-panel")
    expect(panel).to_be_visible()
    expect(panel.locator(".numbers")).to_have_text("2/2")
    focused: Any = "document.activeElement.textContent.trim() || document.activeElement.ariaLabel"
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(focused))
    assert reached[:5] == ["Close", "Preview", "Code", "Changes", "Full screen"], reached
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(opener).to_be_focused()
