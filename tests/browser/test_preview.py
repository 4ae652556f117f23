"""What an answer wrote as a page or a picture, shown in a frame that reaches nothing."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import ask
from tests.browser.scripted import ScriptedChat

PAGE = """```html
<!doctype html>
<title>Counter</title>
<form><button>Count</button></form><output>0</output>
<script>
  document.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    document.querySelector("output").textContent = String(6 * 7);
  });
</script>
```
"""
SPY = """```html
<p id="told"></p><a href="https://stranger.example/link">away</a>
<img src="/healthz?pixel">
<script src="/healthz?script"></script>
<script>
  const told = [];
  const attempt = (name, work) => {
    try { told.push(`${name}: ${work()}`); } catch (error) { told.push(`${name}: ${error.name}`); }
    document.getElementById("told").textContent = told.join(", ");
  };
  attempt("cookie", () => document.cookie);
  attempt("storage", () => localStorage.length);
  attempt("parent", () => parent.document.title);
  attempt("window", () => String(window.open("https://stranger.example/window")));
  attempt("modes", () => document.compatMode);
  fetch("/healthz?fetch").then(() => told.push("fetched"), () => attempt("fetch", () => "refused"));
  if (location.hash === "") setTimeout(() => { location.href = "https://stranger.example/gone"; }, 1500);
</script>
```
"""


def _answer(chat: ScriptedChat, page: Page, text: str) -> None:
    ask(page, "Show me")
    chat.write("r1", text)
    chat.finish("r1")
    expect(page.locator("[data-message][data-status=complete]").last).to_be_visible()


def test_a_page_runs_where_its_source_was(chat: ScriptedChat, page: Page) -> None:
    _answer(chat, page, PAGE)
    assert page.locator("iframe").count() == 0
    preview = page.get_by_role("button", name="Preview")
    preview.click()
    frame = page.frame_locator("iframe.preview__page")
    frame.get_by_role("button", name="Count").click()
    expect(frame.locator("output")).to_have_text("42")
    expect(preview).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".code pre")).to_be_hidden()
    expect(page.locator(".preview__note")).to_be_hidden()
    expect(page.get_by_role("button", name="Full screen")).to_be_visible()
    preview.click()
    expect(page.locator(".code pre")).to_be_visible()
    assert page.locator("iframe").count() == 0


def test_a_picture_is_shown(chat: ScriptedChat, page: Page) -> None:
    _answer(chat, page, '```svg\n<svg viewBox="0 0 9 9"><circle r="4" cx="4" cy="4"/></svg>\n```\n')
    page.get_by_role("button", name="Preview").click()
    circle = page.frame_locator("iframe.preview__page").locator("circle")
    expect(circle).to_be_visible()


@pytest.mark.parametrize("language", ["python", "xml", ""])
def test_other_code_has_no_preview(chat: ScriptedChat, page: Page, language: str) -> None:
    _answer(chat, page, f"```{language}\n<b>1</b>\n```\n")
    expect(page.get_by_role("button", name="Copy").first).to_be_visible()
    expect(page.locator("[data-preview-code]")).to_be_hidden()


def test_a_preview_reaches_nothing(chat: ScriptedChat, page: Page) -> None:
    """Neither our own host nor another one is asked: the fixtures of `page` see to others."""
    arrived: list[str] = []
    page.route("**/healthz*", lambda route: (arrived.append(route.request.url), route.abort()))
    _answer(chat, page, SPY)
    page.get_by_role("button", name="Preview").click()
    told = page.frame_locator("iframe.preview__page").locator("#told")
    expect(told).to_have_text(
        "cookie: SecurityError, storage: SecurityError, parent: SecurityError, window: null,"
        " modes: CSS1Compat, fetch: refused"
    )
    expect(page.locator(".preview__note")).to_contain_text("loads nothing from elsewhere")
    page.frame_locator("iframe.preview__page").get_by_role("link").click()
    page.wait_for_timeout(2500)  # until it has tried to go away
    assert page.evaluate("window.__violations.splice(0)") == ["frame-src https://stranger.example "]
    assert all("stranger.example" not in frame.url for frame in page.frames)
    assert arrived == []
