"""Office files, e-books and PDFs become pages of text with their structure."""

import io
import re
import tarfile
import zipfile
from collections.abc import Callable

import openpyxl
import pptx
import pytest

from retrieval.parsing import Unreadable
from retrieval.parsing.formats.number_formats import number_text
from tests.retrieval.conftest import Read, blocks, page_texts
from tests.retrieval.office import make_docx, make_epub, make_odt, make_pptx, make_xlsx, make_zip
from tests.retrieval.pdfs import PdfPage, make_pdf


def test_a_docx_keeps_headings_lists_tables_and_insertions(read: Read) -> None:
    parsed = read("report.docx", make_docx())
    assert (parsed.title, parsed.language) == ("The Annual Report", "en-GB")
    assert parsed.media_type.endswith("wordprocessingml.document")
    headings = [
        (b.level, parsed.text[b.start : b.end]) for b in parsed.blocks if b.kind == "heading"
    ]
    assert headings == [(1, "Results"), (2, "Regions")]
    assert blocks(parsed, "list") == ["- North\n- South"]
    assert blocks(parsed, "table") == ["| Region | Sales |\n| --- | --- |\n| North \\| East | 17 |"]
    texts = blocks(parsed, "text")
    assert texts == ["Sales rose by four percent.", "An inserted sentence.", "In a control."]
    assert [page.label for page in parsed.pages] == [""]


def test_a_slide_is_a_page_with_its_notes(read: Read) -> None:
    parsed = read("talk.pptx", make_pptx())
    assert [page.label for page in parsed.pages] == ["Why glass", "Figures"]
    first, second = page_texts(parsed)
    assert first == "Why glass\n\n- It is clear\n- It is old\n\nNotes: Speak slowly."
    assert second.endswith("| Year | Panes |\n| --- | --- |\n| 1890 | 12 |")


def test_a_sheet_is_a_page_of_rows(read: Read) -> None:
    parsed = read("prices.xlsx", make_xlsx())
    assert [page.label for page in parsed.pages] == ["Prices", "Empty", "Dates"]
    prices, empty, dates = page_texts(parsed)
    assert prices == (
        "Prices\n\n| Item | Price |\n| --- | --- |\n| item 1 | 0.1 |\n| item 2 | 0.2 |"
    )
    assert empty == ""
    assert "| Day | 2026-11-23 |" in dates
    (note,) = parsed.notes
    assert note.startswith("Formulas without results were left out.")


@pytest.mark.parametrize("result", [b"<v>2</v>", b'" t="str"><f>1+1</f><v></v>'])
def test_of_formulas_with_results_nothing_is_left_out(read: Read, result: bytes) -> None:
    parts = {}
    with zipfile.ZipFile(io.BytesIO(make_xlsx())) as packed:
        for name in packed.namelist():
            parts[name] = packed.read(name)
    sheet = "xl/worksheets/sheet3.xml"
    cell = re.compile(rb'"><f>1\+1</f><v ?/>|"><f>1\+1</f><v></v>')
    given = result if b"<f>" in result else b'"><f>1+1</f>' + result
    assert cell.search(parts[sheet])
    parts[sheet] = cell.sub(given, parts[sheet])
    assert read("a.xlsx", make_zip(parts)).notes == ()


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (0.125, "0%", "13%"),
        (0.1234, "0.0%", "12.3%"),
        (1234567.5, "#,##0", "1,234,568"),
        (1234.5, "#,##0.00", "1,234.50"),
        (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
        (-1234.5, "#,##0.00 [$€-407]", "-1,234.50 €"),
        (-1234.5, "$#,##0.00;[Red]($#,##0.00)", "($1,234.50)"),
        (1234, '_-* #,##0.00\\ "CHF"_-;-* #,##0.00\\ "CHF"_-', "1,234.00 CHF"),
        (42, "00000", "00042"),
        (7, '"No. "000', "No. 007"),
        (3_400_000, '0.0,,"M"', "3.4M"),
        (0.5, "#.##", ".5"),
        (2.5, "0.0##", "2.5"),
        (-0.001, "0.00", "0.00"),
        (0, "0;-0;0", "0"),
        (-5, "0;[Red]0", "-5"),
        (0, '_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-;_-@_-', "-"),
        (0, "#", "0"),
        (1_234_000, "#,##0,", "1,234"),
        (0.1 + 0.2, "General", "0.3"),
        (12, "@", "12"),
        (0.25, "# ?/?", "0.25"),
        (12345.0, "0.00E+00", "12345"),
        (5, '[>3]"many";0', "5"),
        (10**20, "0", "1" + "0" * 20),
        (float("inf"), "0.00", "inf"),
        (1e300, "0", f"{10**300}"),
    ],
)
def test_a_number_is_told_as_its_cell_shows_it(
    value: float, number_format: str, shown: str
) -> None:
    assert number_text(value, number_format) == shown


def test_a_sheet_is_read_as_it_is_seen(read: Read) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Share", "Code", "Price"])
    sheet.append([0.125, 42, 1234.5])
    for cell, number_format in zip(sheet[2], ("0.0%", "00000", "#,##0.00"), strict=True):
        cell.number_format = number_format
    for name, state in (("Draft", "hidden"), ("Lists", "veryHidden")):
        book.create_sheet(name).append(["secret"])
        book[name].sheet_state = state
    file = io.BytesIO()
    book.save(file)
    parsed = read("a.xlsx", file.getvalue())
    assert "| 12.5% | 00042 | 1,234.50 |" in parsed.text
    assert "secret" not in parsed.text
    assert [page.label for page in parsed.pages] == ["Sheet"]
    assert parsed.notes == ("Hidden sheets were left out: “Draft”, “Lists”.",)


def test_hidden_slides_are_left_out_and_named(read: Read) -> None:
    presentation = pptx.Presentation()
    for number in range(1, 4):
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        slide.shapes.add_textbox(0, 0, 9, 9).text_frame.text = f"Words {number}"
        if number == 2:
            slide.element.set("show", "0")
    file = io.BytesIO()
    presentation.save(file)
    parsed = read("a.pptx", file.getvalue())
    assert page_texts(parsed) == ["Words 1", "Words 3"]
    assert [page.label for page in parsed.pages] == ["Slide 1", "Slide 3"]
    assert parsed.notes == ("Hidden slides were left out: 2.",)


def test_of_a_long_sheet_the_first_rows_are_read_and_the_rest_is_named(read: Read) -> None:
    parsed = read("prices.xlsx", make_xlsx(50), max_sheet_rows=10)
    assert "item 9 " in parsed.text
    assert "item 10 " not in parsed.text
    assert "Of the sheet “Prices” only the first 10 rows were read." in parsed.notes


def test_chapters_of_a_book_come_in_the_order_of_reading(read: Read) -> None:
    chapters = {
        "z%20.xhtml": "<h1>The Door</h1><p>It was&nbsp;shut.</p>",
        "a.xhtml": "<h1>The Key</h1><p>It was lost.</p><ul><li>Twice</li></ul>",
    }
    book = make_epub({name.replace("%20", " "): body for name, body in chapters.items()})
    parsed = read("stories.epub", book)
    assert (parsed.title, parsed.language) == ("Small Stories", "de-AT")
    assert [page.label for page in parsed.pages] == ["The Door", "The Key"]
    assert page_texts(parsed)[1] == "The Key\n\nIt was lost.\n\n- Twice"


def test_an_opendocument_text_is_read(read: Read) -> None:
    parsed = read("glass.odt", make_odt())
    assert parsed.text == "Glass\n\nIt is clear.\n\n- one\n\n| a | b | b |\n| --- | --- | --- |"
    assert parsed.blocks[0].level == 2


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (make_docx, "wordprocessingml.document"),
        (make_xlsx, "spreadsheetml.sheet"),
        (make_pptx, "presentationml.presentation"),
        (lambda: make_pdf([PdfPage([(72, 700, 12, "Words")])]), "pdf"),
    ],
)
def test_the_content_says_what_a_file_is_and_not_its_name(read: Read, made, kind: str) -> None:  # type: ignore[no-untyped-def]
    assert read("notes.txt", made()).media_type.endswith(kind)


def test_a_pdf_has_pages_with_boxes_a_title_and_headings(read: Read) -> None:
    long = "This sentence is set in the size of most letters of the page."
    lines = [(72.0, 600.0 - 14 * row, 12.0, long) for row in range(4)]
    pages = [
        PdfPage([(72, 700, 24, "The Report"), (72, 650, 16, "First part"), *lines]),
        PdfPage([(72, 700, 12, "Listed"), *lines], width_pt=300, height_pt=400, rotate=90),
    ]
    made = make_pdf(pages, title="A Title", outline=[("Listed", 1)], language="fr-CA")
    parsed = read("report.pdf", made)
    assert (parsed.title, parsed.language, parsed.notes) == ("A Title", "fr-CA", ())
    sizes = [(page.width_pt, page.height_pt) for page in parsed.pages]
    assert sizes == [(612, 792), (400, 300)]  # the second as it is shown
    headings = [
        (b.level, parsed.text[b.start : b.end]) for b in parsed.blocks if b.kind == "heading"
    ]
    assert headings == [(1, "The Report"), (2, "First part"), (1, "Listed")]
    assert blocks(parsed, "text")[0] == "\n".join([long] * 4)


def test_a_pdf_may_have_lines_in_front(read: Read, refusal: Callable[..., Unreadable]) -> None:
    pdf = make_pdf([PdfPage([(72.0, 700.0, 12.0, "Glass is a solid.")])])
    for front in (b"HTTP/1.1 200 OK\r\n\r\n", b"\xef\xbb\xbf", b"  ", bytes(128)):
        assert read("x", front + pdf).text == "Glass is a solid.", front
    broken = b"A line\n%PDF-1.7\n" + bytes(range(256)) * 9
    assert refusal("x.pdf", broken).code == "broken"


def test_an_archive_with_a_pdf_in_it_is_no_pdf(refusal: Callable[..., Unreadable]) -> None:
    pdf = make_pdf([PdfPage([(72.0, 700.0, 12.0, "Glass is a solid.")])])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("glass.pdf", pdf)
    assert refusal("x.zip", packed.getvalue()).code == "unsupported_type"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("glass.pdf")
        entry.size = len(pdf)
        tar.addfile(entry, io.BytesIO(pdf))
    assert refusal("x.tar", packed.getvalue()).code == "unsupported_type"


def test_two_columns_of_a_pdf_are_read_one_after_the_other(read: Read) -> None:
    left = [(50.0, 700.0 - 14 * row, 10.0, f"left column line {row}") for row in range(5)]
    right = [(330.0, 700.0 - 14 * row, 10.0, f"right column line {row}") for row in range(5)]
    text = read("columns.pdf", make_pdf([PdfPage(left + right)])).text
    assert text.index("left column line 4") < text.index("right column line 0")


def test_a_word_divided_at_the_end_of_a_line_is_one_word(read: Read) -> None:
    lines = [(72.0, 700.0, 12.0, "A rather exam-"), (72.0, 686.0, 12.0, "ple of a divided word.")]
    assert "rather example of" in read("divided.pdf", make_pdf([PdfPage(lines)])).text


def test_a_page_without_words_between_others_is_told(read: Read) -> None:
    words = PdfPage([(72, 700, 12, "Words")])
    parsed = read(
        "mixed.pdf", make_pdf([words, PdfPage(stream=b"0 0 9 9 re f"), PdfPage(stream=b" ")])
    )
    assert [page.start == page.end for page in parsed.pages] == [False, True, True]
    assert (
        len(parsed.notes) <= 1
    )  # of the painted page, where it could not be read; not of the blank
