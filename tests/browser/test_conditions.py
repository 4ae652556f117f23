"""Pages as few see them: in forced colours, four times zoomed, on paper, from right to left."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.library import add_chats
from tests.browser.pages import INPUT, ask, last_answer, wait_for
from tests.browser.scripted import ScriptedChat
from tests.sites import Site, email_of

LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
# How an element differs for somebody whose browser takes all tints and shadows away.
LOOKS = """one => {
  const style = getComputedStyle(one);
  const [red, green, blue, alpha = 1] = style.backgroundColor.match(/[\\d.]+/g).map(Number);
  const isBare = !alpha || red + green + blue === 3 * 255; // the canvas is white
  const ground = isBare ? "" : style.backgroundColor;
  return [ground, style.borderInlineStartWidth, style.outlineStyle];
}"""
IS_FIRST_LETTER_SEEN = """title => {
  const range = document.createRange();
  const words = document.createTreeWalker(title, NodeFilter.SHOW_TEXT).nextNode();
  range.setStart(words, 0);
  range.setEnd(words, 1);
  const [letter, box] = [range, title].map((one) => one.getBoundingClientRect());
  return letter.width > 0 && letter.left >= box.left - 1 && letter.right <= box.right + 1;
}"""
NEW_DOCUMENT = """async ([csrf, name]) => {
  const headers = { "X-CSRFToken": csrf };
  const json = { ...headers, "Content-Type": "application/json" };
  const made = await fetch("/api/collections", {
    method: "POST", headers: json, body: JSON.stringify({ name: "Long names", description: "" }) });
  const { id } = await made.json();
  const octets = { ...headers, "Content-Type": "application/octet-stream" };
  const query = new URLSearchParams({ name });
  const address = `/api/collections/${id}/documents?${query}`;
  const kept = await fetch(address, { method: "POST", headers: octets, body: "Glass is clear." });
  return (await kept.json()).id;
}"""


@pytest.fixture(scope="module")
def listed(vitrine_server: Site, reader_cookies: list[Any]) -> None:
    """Chats beside the one that is shown."""
    add_chats(
        vitrine_server, email_of("Reader"), {f"Listed {n}": ["Which?", "This."] for n in range(3)}
    )


def _open_listed(page: Page) -> None:
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    page.locator(".chat-link a", has_text="Listed 1").first.click()
    expect(last_answer(page)).to_contain_text("This.")


def test_forced_colours_show_what_is_chosen(
    listed: None, reader: BrowserContext, page: Page
) -> None:
    page.emulate_media(forced_colors="active")
    page.goto("/settings/")
    for row in page.locator(".choices:visible").all():
        labels = row.locator("label").all()
        chosen = [label for label in labels if label.locator("input:checked").count()]
        others = [label for label in labels if not label.locator("input:checked").count()]
        assert len(chosen) == 1
        assert _looks(chosen[0]) not in [_looks(label) for label in others], row.inner_text()
    _open_listed(page)
    rows = page.locator(".chat-link[data-conversation]")
    current = rows.filter(has=page.locator("[aria-current]"))
    other = rows.filter(has_not=page.locator("[aria-current]")).last
    assert _looks(current) != _looks(other)
    box = page.locator(".composer")
    page.focus(INPUT)
    focused = _looks(box)
    page.focus("model-picker .picker")
    assert _looks(box) != focused


def _looks(one: Locator) -> list[str]:
    looks: list[str] = one.evaluate(LOOKS)
    return looks


def test_four_times_zoomed_the_composer_leaves_room_and_chats_are_listed(
    listed: None, reader: BrowserContext, page: Page
) -> None:
    page.set_viewport_size({"width": 320, "height": 256})
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    page.locator("[data-toggle-sidebar]:visible").first.click()
    chats = page.locator(".sidebar__list")
    expect(chats).to_be_attached()
    assert chats.evaluate("list => list.clientHeight") > 100
    page.locator(".chat-link a", has_text="Listed 1").first.click()
    expect(last_answer(page)).to_contain_text("This.")
    page.keyboard.press("Control+Shift+ArrowUp")
    wait_for(page, "document.querySelector('#scroller').scrollTop === 0")
    seen = page.evaluate(
        "[80, 130, 180, 230].map(y => document.elementFromPoint(160, y).closest('#foot') === null)"
    )
    assert sum(seen) >= 3  # of what is under the bar
    last_answer(page).locator("[data-act=more]").click()
    expect(page.locator("#message-menu")).to_be_visible()


def test_paper_is_light_and_has_no_buttons_and_all_of_the_code(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Code")
    chat.write("r1", f"| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nname = '{LONG}'\n```\n")
    chat.finish("r1")
    code = last_answer(page).locator("pre")
    code.wait_for()
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.emulate_media(media="print")
    lightness = page.evaluate(
        "getComputedStyle(document.querySelector('.message__parts')).color.match(/[\\d.]+/)[0]"
    )
    assert float(lightness) < 0.5  # of ink, in OKLCH
    assert code.evaluate("pre => pre.scrollWidth <= pre.clientWidth")
    buttons = last_answer(page).locator("button:visible")
    assert [text for text in buttons.all_inner_texts() if "tokens" not in text] == []
    question = page.locator(".message--user .message__parts")
    assert question.evaluate("one => getComputedStyle(one).borderTopWidth") == "1px"


def test_the_name_of_a_document_is_read_from_its_beginning(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/")
    csrf = page.evaluate("JSON.parse(document.querySelector('#bootstrap').textContent).csrf")
    document = page.evaluate(NEW_DOCUMENT, [csrf, f"{LONG}.md"])
    for language in ("en", "ar"):
        page.set_extra_http_headers({"Accept-Language": language})
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"/documents/{document}")
        assert page.locator("h1").evaluate(IS_FIRST_LETTER_SEEN), language
