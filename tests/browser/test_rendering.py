"""What an answer looks like while it is written and afterwards: code, formulas, tables, diagrams."""

import random
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import answer_text, ask, last_answer
from tests.browser.screenshots import ANSWER, RICH_ANSWER
from tests.browser.scripted import ScriptedChat

CLIPBOARD = """
  navigator.clipboard.writeText = async (text) => { window.__copied = text; };
"""
CODE = "```python\ndef f(x):\n    return x + 1  # one\n```\n"
# The inside of a prose element, adjacent texts joined, without what was seen by chance.
SHAPE = """
  prose => {
    const copy = prose.cloneNode(true);
    copy.normalize();
    for (const image of copy.querySelectorAll("img")) image.removeAttribute("src");
    return copy.innerHTML;
  }
"""


def write(chat: ScriptedChat, text: str, run: str = "r1", size: int = 10_000) -> None:
    for start in range(0, len(text), size):
        chat.write(run, text[start : start + size], offset=start)


def answer(chat: ScriptedChat, page: Page, text: str) -> Locator:
    """A finished answer with that text, drawn."""
    ask(page, "Show me")
    write(chat, text)
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    answer_text(page)
    return last_answer(page).locator(".prose")


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_written_in_pieces_looks_like_the_whole(
    chat: ScriptedChat, page: Page, seed: int
) -> None:
    """Before and after its end: the pieces end anywhere."""
    text = f"{RICH_ANSWER}\n{ANSWER}\n- a\n  ```js\n  let x = `{{\n  }}`;\n  ```\n\nEnd $x"
    pieces = random.Random(seed)
    ask(page, "In pieces")
    start = 0
    while start < len(text):
        size = pieces.choice([1, 3, 8, 40, 200])
        chat.write("r1", text[start : start + size], offset=start)
        start += size
        if pieces.random() < 0.3:
            page.wait_for_timeout(20)  # so that it is drawn
    prose = last_answer(page).locator(".prose")
    expect(prose.locator(".diagram img")).to_have_count(2, timeout=30_000)
    expect(prose.locator(".katex")).to_have_count(8)
    expect(prose.locator(".hljs-keyword").last).to_be_visible()
    before = prose.evaluate(SHAPE)
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    after = prose.evaluate(SHAPE)
    ask(page, "At once")
    chat.write("r2", text)
    chat.finish("r2")
    whole = last_answer(page).locator(".prose")
    expect(whole.locator(".diagram img")).to_have_count(2, timeout=30_000)
    assert after == whole.evaluate(SHAPE)
    assert before == after


def test_code_grows_without_touching_what_is_selected(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Code")
    chat.write("r1", "```python\nfirst = 1\nsecond")
    code = last_answer(page).locator(".code code")
    expect(code.locator(".hljs-number")).to_have_text("1")
    code.evaluate("code => getSelection().selectAllChildren(code.querySelector('.hljs-number'))")
    code.evaluate("code => { code.firstChild.ours = true; }")
    chat.write("r1", " = 2\nthird = 3\n```\n\nText behind", offset=26)
    expect(last_answer(page)).to_contain_text("Text behind")
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    expect(code).to_have_text("first = 1\nsecond = 2\nthird = 3\n", use_inner_text=False)
    assert code.evaluate("code => code.firstChild.ours") is True
    assert page.evaluate("getSelection().toString()") == "1"


def test_an_open_fence_is_code_at_once_and_half_an_end_is_not_shown(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Code")
    chat.write("r1", "```js\nlet a;\n")
    code = last_answer(page).locator(".code code")
    expect(code).to_have_text("let a;")
    chat.write("r1", "``", offset=13)
    page.wait_for_timeout(100)
    assert code.text_content() == "let a;\n"


def test_code_can_be_copied_wrapped_and_downloaded(chat: ScriptedChat, page: Page) -> None:
    page.add_init_script(CLIPBOARD)
    page.reload()
    prose = answer(chat, page, CODE)
    frame = prose.locator(".code")
    expect(frame.locator(".code__language")).to_have_text("python")
    frame.get_by_role("button", name="Copy").click()
    expect(frame.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("window.__copied") == "def f(x):\n    return x + 1  # one\n"
    wrap = frame.get_by_role("button", name="Wrap lines")
    wrap.click()
    expect(wrap).to_have_attribute("aria-pressed", "true")
    expect(frame.locator("code")).to_have_css("white-space", "pre-wrap")
    with page.expect_download() as download:
        frame.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "code.py"
    assert download.value.path().read_text() == "def f(x):\n    return x + 1  # one\n"


def test_whether_lines_are_wrapped_is_remembered(chat: ScriptedChat, page: Page) -> None:
    answer(chat, page, CODE).get_by_role("button", name="Wrap lines").click()
    ask(page, "Once more")
    chat.write("r2", CODE)
    again = last_answer(page).locator(".code")
    expect(again.locator("code")).to_have_css("white-space", "pre-wrap")
    expect(again.get_by_role("button", name="Wrap lines")).to_have_attribute("aria-pressed", "true")


def test_long_lines_scroll_inside_their_frame(chat: ScriptedChat, page: Page) -> None:
    wide = "x" * 500
    head = "|".join(["column"] * 40)
    text = (
        f"```\n{wide}\n```\n\n|{head}|\n|{'---|' * 40}\n|{head}|\n\n$${'+'.join(['x'] * 200)}$$\n"
    )
    prose = answer(chat, page, text)
    expect(prose.locator(".katex").first).to_be_visible()
    for inner in ("pre", ".table__scroll", ".math--display"):
        assert prose.locator(inner).evaluate("box => box.scrollWidth > box.clientWidth"), inner
    assert page.locator("#scroller").evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_a_table_is_copied_as_csv(chat: ScriptedChat, page: Page) -> None:
    page.add_init_script(CLIPBOARD)
    page.reload()
    text = (
        '| Name | Note |\n|---|--:|\n| **Ada**, L. | say "hi" |\n| =1+1 | $x^2$ |\n| -5 | `a` |\n'
    )
    prose = answer(chat, page, text)
    expect(prose.locator(".katex")).to_be_visible()
    prose.hover()
    prose.get_by_role("button", name="Copy as CSV").click()
    expect(prose.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("window.__copied") == (
        'Name,Note\r\n"Ada, L.","say ""hi"""\r\n\'=1+1,$x^2$\r\n-5,a\r\n'
    )


def test_a_formula_is_drawn_and_its_source_is_there_for_readers(
    chat: ScriptedChat, page: Page
) -> None:
    prose = answer(chat, page, "Let $x^2$ cost $5 or $6.\n\n\\[ \\frac{a}{b} \\]\n\n$\\wrong{x}$")
    expect(prose.locator(".katex")).to_have_count(2)
    expect(prose.locator("p").first).to_contain_text("cost $5 or $6.")
    expect(prose.locator("math annotation").first).to_have_text("x^2")
    expect(prose.locator(".math[data-wrong]")).to_have_text("\\wrong{x}")


def test_a_formula_grows_as_it_is_written(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Formula")
    chat.write("r1", "$$\n\\frac{a")
    katex = last_answer(page).locator(".katex-html")
    expect(katex).to_be_attached()
    heights = [last_answer(page).locator(".math").evaluate("box => box.offsetHeight")]
    for offset, piece in ((10, "}{b"), (13, "} = \\sq"), (20, "rt{c}\n"), (26, "$$\n")):
        chat.write("r1", piece, offset=offset)
        page.wait_for_timeout(60)
        heights.append(last_answer(page).locator(".math").evaluate("box => box.offsetHeight"))
    expect(last_answer(page).locator("annotation")).to_have_text("\\frac{a}{b} = \\sqrt{c}")
    assert heights == sorted(heights)  # nothing jumps back
    assert heights[-1] == heights[-2]  # nor at the end


def test_a_table_does_not_jump_into_being(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Table")
    for offset, piece in (
        (0, "| a "),
        (4, "| b |\n"),
        (10, "|--"),
        (13, "-|---|\n"),
        (20, "| 1 | 2"),
    ):
        chat.write("r1", piece, offset=offset)
        expect(last_answer(page).locator("th").first).to_have_text("a")
        expect(last_answer(page).locator(".prose > p")).to_have_count(0)
    expect(last_answer(page).locator("td")).to_have_text(["1", "2"])


def test_a_diagram_is_drawn_once_its_fence_is_closed(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Diagram")
    source = "```mermaid\ngraph TD\n  A --> B\n"
    chat.write("r1", source)
    expect(last_answer(page).locator(".diagram code")).to_contain_text("A --> B")
    page.wait_for_timeout(300)
    assert page.locator("iframe").count() == 0
    chat.write("r1", "```\n", offset=len(source))
    image = last_answer(page).locator(".diagram img:visible")
    expect(image).to_have_count(1, timeout=30_000)
    assert image.evaluate("image => image.naturalWidth") > 50
    frame = page.locator("iframe")
    assert frame.get_attribute("sandbox") == "allow-scripts"
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    expect(image).to_have_count(1)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        expect(image).to_have_class(f"diagram__{theme}")
    show = last_answer(page).get_by_role("button", name="Show the source")
    show.click()
    expect(last_answer(page).locator(".diagram code")).to_be_visible()
    expect(image).to_have_count(0)
    show.click()
    with page.expect_download() as download:
        last_answer(page).get_by_role("button", name="Download").click()
    assert download.value.path().read_text().startswith("<svg")


def test_a_diagram_that_is_none_shows_its_source_and_says_so(
    chat: ScriptedChat, page: Page
) -> None:
    text = '```mermaid\ngraph TD\n  A -->\n```\n\n```mermaid\npie\n  "a" : 1\n```\n'
    prose = answer(chat, page, text)
    expect(prose.locator(".diagram img:visible")).to_have_count(1, timeout=30_000)
    expect(prose.locator(".diagram__problem:visible")).to_contain_text("could not be drawn")
    expect(prose.locator(".diagram code").first).to_be_visible()


def test_a_sandbox_that_lies_is_not_believed(chat: ScriptedChat, page: Page) -> None:
    page.route(
        "**/sandbox/diagram*.js",
        lambda route: route.fulfill(
            content_type="text/javascript",
            headers={"Cross-Origin-Resource-Policy": "cross-origin"},
            body="""
              parent.postMessage({type: "ready"}, "*");
              addEventListener("message", ({data}) => parent.postMessage(
                {type: "drawn", id: data.id, svg: "<svg/>", width: 1e9, height: 1e9}, "*"));
            """,
        ),
    )
    prose = answer(chat, page, "```mermaid\ngraph TD\n  A --> B\n```\n")
    expect(prose.locator(".diagram__problem")).to_contain_text("too large")
    expect(prose.locator(".diagram code")).to_be_visible()


def test_each_block_reads_in_its_own_direction(chat: ScriptedChat, page: Page) -> None:
    text = "مرحبا بالعالم\n\nHello\n\n- שלום\n- עולם\n\n```\nمرحبا code\n```\n"
    prose = answer(chat, page, text)
    direction: Any = "box => getComputedStyle(box).direction"
    assert prose.locator("p").first.evaluate(direction) == "rtl"
    assert prose.locator("p").nth(1).evaluate(direction) == "ltr"
    assert prose.locator("ul").evaluate(direction) == "rtl"
    assert prose.locator(".code").evaluate(direction) == "ltr"
