"""Where a passage is on a page of a PDF."""

import io
from pathlib import Path

import pytest
from PIL import Image

from retrieval.parsing import Box, Limits, Unreadable, boxes, parse, picture
from tests.retrieval.pdfs import PdfPage, make_pdf

LINES = [(72.0, 700.0, 12.0, "The first line of glass"), (72.0, 680.0, 12.0, "and the second line")]


def found(path: Path, words: str, page_number: int = 1) -> list[Box]:
    parsed = parse(path, name="x.pdf", limits=Limits())
    page = parsed.pages[page_number - 1]
    start = parsed.text.index(words, page.start) - page.start
    return boxes(path, page_number, start, start + len(words))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.pdf"


def test_a_passage_has_a_rectangle_for_each_line_from_the_top_left(path: Path) -> None:
    path.write_bytes(make_pdf([PdfPage(), PdfPage(LINES)]))
    upper, lower = found(path, "line of glass\nand the", 2)
    assert 792 - 700 - 12 < upper.y0 < upper.y1 < 792 - 700 + 4  # around the line at 700 from below
    assert 792 - 680 - 12 < lower.y0 < lower.y1 < 792 - 680 + 4
    assert lower.x0 == pytest.approx(72, abs=2)
    assert upper.x0 > 100  # behind "The first"
    assert upper.x1 - upper.x0 == pytest.approx(13 * 5, rel=0.3)  # 13 letters of some 5 points


def test_boxes_are_those_of_the_page_as_it_is_shown(path: Path) -> None:
    path.write_bytes(make_pdf([PdfPage(LINES, rotate=90)]))
    (box,) = found(path, "first")
    # Turned to the right: what was 700 from below is as far from the left.
    assert box.x0 == pytest.approx(700, abs=4)
    assert box.y0 > 72
    assert box.y1 - box.y0 > box.x1 - box.x0


@pytest.mark.parametrize("is_drawn", [True, False])
def test_what_is_filled_in_is_read_and_has_its_place(path: Path, is_drawn: bool) -> None:
    blank = PdfPage([(50.0, 700.0, 12.0, "Name of the applicant:")])
    filled = PdfPage(blank.lines, fields=[(300.0, 700.0, "Zephyrine Quill")], draws_fields=is_drawn)
    path.write_bytes(make_pdf([blank, filled]))
    (box,) = found(path, "Zephyrine Quill", 2)
    assert 295 < box.x0 < 310
    assert 792 - 700 - 15 < box.y0 < box.y1 < 792 - 700 + 5
    (label,) = found(path, "applicant", 2)
    assert label.x1 < 200
    first, second = (
        Image.open(io.BytesIO(picture(path, number, 612).data))
        .convert("L")
        .crop((300, 70, 500, 100))
        for number in (1, 2)
    )
    assert first.getextrema() == (255, 255)
    assert second.getextrema()[0] < 128


def test_places_hold_behind_a_divided_word(path: Path) -> None:
    lines = [(72.0, 700.0, 12.0, "an exam-"), (72.0, 680.0, 12.0, "ple of marked words")]
    path.write_bytes(make_pdf([PdfPage(lines)]))
    (alone,) = found(path, "marked")
    over, under = found(path, "example")
    assert alone.y0 == pytest.approx(under.y0, abs=4)
    assert over.y1 < under.y0
    assert under.x0 == pytest.approx(72, abs=2)
    assert alone.x0 > under.x1


def test_what_is_not_there_has_no_boxes(path: Path, tmp_path: Path) -> None:
    path.write_bytes(make_pdf([PdfPage(LINES)]))
    assert boxes(path, 1, 5, 5) == []
    assert boxes(path, 1, 10_000, 10_010) == []
    assert len(boxes(path, 1, -5, 10_000)) == 2
    text = tmp_path / "x.txt"
    text.write_text("words")
    assert boxes(text, 1, 0, 5) == []
    with pytest.raises(Unreadable) as raised:
        boxes(path, 2, 0, 5)
    assert raised.value.code == "broken"
