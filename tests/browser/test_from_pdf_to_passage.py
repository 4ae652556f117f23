"""The whole way: a PDF is brought, followed, asked about, and opened at what the answer cites."""

import io
import re

import httpx2
from PIL import Image
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.pages import ask
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.browser.test_answers_from_documents import answered, open_chat, pick
from tests.browser.test_documents import WORK_MS, Person, alice, row, shoot
from tests.retrieval.pdfs import PdfPage, make_pdf

__all__ = ["alice"]
FACT = "The office opens at 8 in the morning."
# So long around the page of the fact that it is a passage of its own.
TOWNS = ("Porto", "Oslo", "Lyon", "Graz", "Turin", "Malaga", "Ghent", "Brno", "Tartu", "Split")
TOWNS += ("Cork", "Bergen", "Varna", "Lublin", "Nantes", "Leeds")
PAGES = {
    "Travel": tuple(
        f"Trains to {town} are booked by the desk at gate {town[0]}." for town in TOWNS
    ),
    "Office": ("Visitors are met at the gate.", FACT, "Lunch is served at noon in the canteen."),
    "Cranes": tuple(f"The crane of {town} was built by Otto Brandt of {town}." for town in TOWNS),
}
FACT_PAGE, FACT_ROW = 2, 1
_LEFT_PT, _TOP_PT, _LINE_PT, _LETTER_PT = 72.0, 680.0, 16.0, 11.0


def handbook() -> bytes:
    """A chapter to a page, with the fact in the midst of one."""
    pages = []
    for heading, lines in PAGES.items():
        places = [(_LEFT_PT, 720.0, 20.0, heading)]
        places += [
            (_LEFT_PT, _TOP_PT - _LINE_PT * n, _LETTER_PT, line) for n, line in enumerate(lines)
        ]
        pages.append(PdfPage(places))
    return make_pdf(pages, title="Handbook")


def test_from_a_pdf_to_the_passage_that_an_answer_cites(
    alice: Person, page: Page, context: BrowserContext
) -> None:
    collection = alice.collection("Company notes")
    page.goto(f"/documents/collections/{collection}")
    page.set_input_files(
        "[data-files]",
        {"name": "handbook.pdf", "mimeType": "application/pdf", "buffer": handbook()},
    )
    assert watched(page, "handbook.pdf"), "what goes on before it is ready is shown"
    shoot(page, "collection-ready")

    open_chat(page)
    pick(page, "Company")
    ask(page, "When does the office open?")
    answer = answered(page, f"{FACT.removesuffix('.')} [1].")
    citation = answer.locator("a.citation")
    citation.hover()
    expect(page.locator(".source-card")).to_contain_text(FACT)
    expect(page.locator(".source-card")).to_contain_text(f"p. {FACT_PAGE}")
    shoot(page, "answer-card")

    citation.click()
    panel = page.locator("side-panel")
    expect(panel.get_by_role("heading", name="handbook.pdf")).to_be_visible()
    expect(panel.locator("mark").first).to_be_in_viewport()
    assert FACT in " ".join("".join(panel.locator("mark").all_inner_texts()).split())
    shoot(page, "answer-panel")
    with context.expect_page() as opened:
        panel.get_by_role("link", name="Open in the document").click()
    viewer = opened.value
    viewer.wait_for_url(re.compile(r"/documents/[0-9a-f-]{36}\?version=.*start=\d+&end=\d+"))
    marks = viewer.locator(".sheet__mark")
    expect(marks.first).to_be_in_viewport(timeout=WORK_MS)
    sheet = viewer.locator(".sheet", has=marks.first)
    expect(sheet).to_have_attribute("data-page", str(FACT_PAGE))
    paper = sheet.locator(".sheet__paper")
    expect(paper.locator("img")).to_be_visible(timeout=WORK_MS)
    mark = mark_on_the_fact(marks, paper)
    assert mark is not None, "the line of the fact is marked"
    assert is_coloured(mark), "the mark is seen"
    assert has_letters(mark), "and the letters in it"
    shoot(viewer, "viewer-cited")
    expect_no_faults(viewer)
    expect_no_sideways_scrolling(viewer)

    viewer.get_by_text("Text", exact=True).click()
    words = viewer.locator(".viewer__words mark")
    expect(words.first).to_be_in_viewport()
    marked = " ".join("".join(words.all_inner_texts()).split())
    passage = passage_of(alice.visitor, citation.get_attribute("href") or "")
    assert FACT in passage
    assert marked == " ".join(passage.split())


def watched(page: Page, name: str) -> set[str]:
    """Until it is ready: what else the page has said of it."""
    badge = row(page, name).locator(".badge")
    expect(badge).to_be_visible()
    seen = set()
    for _ in range(WORK_MS // 50):
        text = badge.inner_text()
        if text == "Ready":
            return seen
        seen.add(text)
        page.wait_for_timeout(50)
    raise AssertionError(f"not ready: {seen}")


def mark_on_the_fact(marks: Locator, paper: Locator) -> Locator | None:
    """The mark that lies where the fact was printed, over all of its length and on no further line."""
    whole = paper.bounding_box()
    assert whole is not None
    scale = whole["width"] / 612
    baseline = whole["y"] + (792 - (_TOP_PT - _LINE_PT * FACT_ROW)) * scale
    for number in range(marks.count()):
        box = marks.nth(number).bounding_box()
        assert box is not None
        is_there = box["y"] < baseline - 3 * scale and baseline - scale < box["y"] + box["height"]
        if is_there and abs(box["x"] - whole["x"] - _LEFT_PT * scale) < 4:
            assert box["height"] < 2 * _LINE_PT * scale
            assert box["width"] > len(FACT) * 0.35 * _LETTER_PT * scale
            return marks.nth(number)
    return None


def picture_of(mark: Locator) -> Image.Image:
    return Image.open(io.BytesIO(mark.screenshot())).convert("RGB")


def is_coloured(mark: Locator) -> bool:
    """Paper is white or grey: most of what is marked is neither."""
    pixels = list(picture_of(mark).get_flattened_data())
    return sum(max(pixel) - min(pixel) > 20 for pixel in pixels) > len(pixels) / 2


def has_letters(mark: Locator) -> bool:
    return any(sum(pixel) < 250 for pixel in picture_of(mark).get_flattened_data())


def passage_of(visitor: httpx2.Client, href: str) -> str:
    """What the address of a citation names."""
    document, query = href.removeprefix("/documents/").split("?")
    response = visitor.get(f"/api/documents/{document}/text?{query}")
    assert response.status_code == 200, response.text
    return str(response.json()["text"])
