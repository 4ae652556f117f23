"""Office files and e-books, made by the libraries that read them or by hand."""

import datetime
import io
import zipfile

import docx
import openpyxl
import pptx
from docx.oxml import parse_xml
from pptx.util import Inches

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def make_docx() -> bytes:
    document = docx.Document()
    document.core_properties.title = "The Annual Report"
    document.core_properties.language = "en-GB"
    document.add_heading("Results", 1)
    document.add_paragraph("Sales rose by four percent.")
    document.add_heading("Regions", 2)
    for region in ("North", "South"):
        document.add_paragraph(region, style="List Bullet")
    table = document.add_table(2, 2)
    for row, cells in enumerate((("Region", "Sales"), ("North | East", "17"))):
        for column, words in enumerate(cells):
            table.cell(row, column).text = words
    inserted = f"<w:p {W}><w:ins><w:r><w:t>An inserted sentence.</w:t></w:r></w:ins></w:p>"
    deleted = f"<w:p {W}><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
    control = f"<w:sdt {W}><w:sdtContent>{{}}</w:sdtContent></w:sdt>".format(
        "<w:p><w:r><w:t>In a control.</w:t></w:r></w:p>"
    )
    for xml in (inserted, deleted, control):
        document.element.body.append(parse_xml(xml))
    return _saved(document)


def make_pptx() -> bytes:
    presentation = pptx.Presentation()
    first = presentation.slides.add_slide(presentation.slide_layouts[1])
    first.shapes.title.text = "Why glass"
    first.placeholders[1].text = "It is clear\nIt is old"
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    second = presentation.slides.add_slide(presentation.slide_layouts[5])
    second.shapes.title.text = "Figures"
    shape = second.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1))
    for row, cells in enumerate((("Year", "Panes"), ("1890", "12"))):
        for column, words in enumerate(cells):
            shape.table.cell(row, column).text = words
    return _saved(presentation)


def make_xlsx(num_rows: int = 3) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet.append(["Item", None, "Price"])
    for number in range(1, num_rows):
        sheet.append([f"item {number}", None, number / 10])
    book.create_sheet("Empty")
    other = book.create_sheet("Dates")
    other.append(["Day", datetime.date(2026, 11, 23)])
    other.append(["Sum", "=1+1"])
    return _saved(book)


def _saved(document: object) -> bytes:
    file = io.BytesIO()
    document.save(file)  # type: ignore[attr-defined]
    return file.getvalue()


def make_zip(members: dict[str, bytes | str], *, stored: tuple[str, ...] = ()) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            how = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            packed.writestr(name, data, how)
    return file.getvalue()


def replaced(data: bytes, name: str, content: bytes) -> bytes:
    """The zip with another content in one of its members."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members: dict[str, bytes | str] = {one: packed.read(one) for one in packed.namelist()}
    return make_zip({**members, name: content})


def make_epub(chapters: dict[str, str], *, encryption: str = "") -> bytes:
    """`chapters` are bodies by the names of their files, in the order of the book."""
    items = "".join(
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    members: dict[str, bytes | str] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Small Stories</dc:title>'
        f"<dc:language>de-AT</dc:language></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>",
    }
    for name, body in chapters.items():
        members[f"OEBPS/{name}"] = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html>'
            f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{body}'
            "</body></html>"
        )
    if encryption:
        members["META-INF/encryption.xml"] = encryption
    return make_zip(members, stored=("mimetype",))


def make_odt() -> bytes:
    names = "urn:oasis:names:tc:opendocument:xmlns:"
    content = (
        f'<office:document-content xmlns:office="{names}office:1.0" xmlns:text="{names}text:1.0"'
        f' xmlns:table="{names}table:1.0"><office:body><office:text>'
        '<text:h text:outline-level="2">Glass</text:h>'
        "<text:p>It is <text:span>clear</text:span>.</text:p>"
        "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="2"><text:p>b</text:p></table:table-cell>'
        "</table:table-row></table:table></office:text></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.text"
    return make_zip({"mimetype": mimetype, "content.xml": content}, stored=("mimetype",))
