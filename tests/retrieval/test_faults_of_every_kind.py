"""Files of every kind, cut, locked, empty, huge and swollen: each is read or refused with its reason, in
time and within the child's memory."""

import io
import struct
import time
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from PIL import Image, ImageDraw, ImageFont

from retrieval.parsing import Limits, Unreadable, parse
from tests.retrieval.conftest import Read
from tests.retrieval.office import (
    make_docx,
    make_epub,
    make_odt,
    make_pptx,
    make_xlsx,
    replaced,
)
from tests.retrieval.pdfs import PdfPage, make_pdf

Refusal = Callable[..., Unreadable]
SECONDS = 30.0  # as long as anything below may take; most take a tenth
REASONS = {"broken", "encrypted", "no_text", "too_large", "unsupported_type", "ocr_missing"}


def mail(text: str = "Words of a letter.") -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Glass"
    message.set_content(text)
    message.add_attachment(b"x" * 1000, maintype="application", subtype="x", filename="x.bin")
    return message.as_bytes()


def picture(kind: str, words: str = "The transparent glass") -> bytes:
    image = Image.new("L", (600, 120), "white")
    ImageDraw.Draw(image).text((20, 30), words, "black", ImageFont.load_default(48))
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


PICTURES = {f"a.{kind.lower()}": kind for kind in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP")}
ZIPS: dict[str, Callable[[], bytes]] = {
    "a.docx": make_docx,
    "a.odt": make_odt,
    "a.pptx": make_pptx,
    "a.xlsx": make_xlsx,
    "a.epub": lambda: make_epub({"a.xhtml": "<p>Words</p>"}),
}
TEXTS: dict[str, Callable[[], bytes]] = {
    "a.txt": lambda: b"Words in lines.\n",
    "a.md": lambda: b"# Head\n\nWords.\n",
    "a.csv": lambda: b"a,b\nwords,2\n",
    "a.tsv": lambda: b"a\tb\nwords\t2\n",
    "a.html": lambda: b"<html><body><p>Words of a page.</p></body></html>",
    "a.py": lambda: b"def words():\n    return 1\n",
    "a.eml": mail,
}
FILES: dict[str, Callable[[], bytes]] = {
    "a.pdf": lambda: make_pdf([PdfPage([(72, 700, 12, "Words")])]),
    **ZIPS,
    **TEXTS,
    **{name: (lambda kind=kind: picture(kind)) for name, kind in PICTURES.items()},
}


def in_time(look: Callable[[], str]) -> str:
    began_s = time.monotonic()
    found = look()
    assert time.monotonic() - began_s < SECONDS
    return found


def outcome(read: Read, name: str, data: bytes, **limits: object) -> str:
    """`read`, or the code of the reason why not."""

    def look() -> str:
        try:
            read(name, data, **limits)
        except Unreadable as error:
            return error.code
        return "read"

    return in_time(look)


@pytest.mark.parametrize("name", FILES)
def test_a_whole_one_is_read(read: Read, name: str) -> None:
    assert outcome(read, name, FILES[name]()) in ("read", "ocr_missing")


@pytest.mark.parametrize("name", FILES)
def test_one_that_is_cut_anywhere_is_read_or_refused(read: Read, name: str) -> None:
    data = FILES[name]()
    for size in (1, 9, len(data) // 4, len(data) * 3 // 4, len(data) - 1):
        assert outcome(read, name, data[:size]) in REASONS | {"read"}


@pytest.mark.parametrize("name", FILES)
def test_of_nothing_there_is_nothing(refusal: Refusal, name: str) -> None:
    assert refusal(name, b"").code == "empty"


def without_words(name: str) -> bytes:
    file = io.BytesIO()
    match name:
        case "a.docx":
            docx.Document().save(file)
        case "a.pptx":
            pptx.Presentation().save(file)
        case "a.xlsx":
            openpyxl.Workbook().save(file)
        case "a.epub":
            return make_epub({"a.xhtml": "<p> </p>"})
        case "a.pdf":
            return make_pdf([PdfPage(stream=b" ")])
        case "a.html":
            return b"<html><body><script>var x;</script></body></html>"
        case _ if name in PICTURES:
            return picture(PICTURES[name], "")
        case _:
            return b" \n\t\r\n"
    return file.getvalue()


@pytest.mark.parametrize("name", [one for one in FILES if one not in ("a.odt", "a.eml")])
def test_of_no_words_it_says_so(refusal: Refusal, name: str) -> None:
    assert refusal(name, without_words(name)).code in ("no_text", "ocr_missing")


def locked(data: bytes) -> bytes:
    """The zip with the mark of a password at each of its parts, as archivers set it."""
    locked = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        start = packed.start_dir
        for part in packed.infolist():
            locked[part.header_offset + 6] |= 1
    while data[start : start + 4] == b"PK\x01\x02":
        locked[start + 8] |= 1
        start += 46 + sum(struct.unpack_from("<HHH", data, start + 28))
    return bytes(locked)


@pytest.mark.parametrize("name", ZIPS)
def test_a_zip_with_a_password_says_so(refusal: Refusal, name: str) -> None:
    assert refusal(name, locked(ZIPS[name]())).code == "encrypted"


def test_an_odt_with_a_password_says_so(refusal: Refusal) -> None:
    entry = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        '<manifest:file-entry manifest:full-path="content.xml"><manifest:encryption-data/>'
        "</manifest:file-entry></manifest:manifest>"
    )
    data = replaced(make_odt(), "META-INF/manifest.xml", entry.encode())
    assert (
        refusal("a.odt", replaced(data, "content.xml", bytes(range(256)) * 4)).code == "encrypted"
    )


@pytest.mark.parametrize("name", FILES)
def test_one_that_is_too_large_is_not_opened(tmp_path: Path, name: str) -> None:
    path, data = tmp_path / "file", FILES[name]()
    with path.open("wb") as file:
        file.write(data)
        file.truncate(Limits().max_file_bytes + 1)  # of holes, which take no room

    def look() -> str:
        with pytest.raises(Unreadable) as raised:
            parse(path, name=name, limits=Limits())
        return raised.value.code

    assert in_time(look) == "too_large"


LONG = "Many words of glass and sand. " * 200_000  # six million characters


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", LONG),
        ("a.md", LONG.replace("sand. ", "sand.\n\n")),
        ("a.html", f"<html><body><p>{LONG.replace('sand. ', 'sand.</p><p>')}</p></body></html>"),
        ("a.py", LONG.replace("sand. ", "sand\n")),
        ("a.csv", "a,b\n" + f"{LONG[:300]},2\n" * 19_000),
        ("a.eml", mail(LONG)),
        ("a.epub", make_epub({"a.xhtml": f"<p>{LONG}</p>"})),
        ("a.docx", None),
    ],
)
def test_a_text_that_is_too_long_is_refused(
    read: Read, name: str, data: str | bytes | None
) -> None:
    if data is None:
        body = (
            b"<w:p><w:r><w:t>Many words of glass and sand of the sea.</w:t></w:r></w:p>" * 130_000
        )
        space = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        xml = b"<w:document %s><w:body>%s</w:body></w:document>" % (space, body)
        data = replaced(make_docx(), "word/document.xml", xml)
    given = data.encode() if isinstance(data, str) else data
    # Packed so well, it may be taken for a bomb.
    assert outcome(read, name, given) == "too_large"


def test_a_sheet_that_is_too_long_is_cut_with_a_note(read: Read) -> None:
    rows = "a,b\n" + "word,2\n" * 30_000
    parsed = read("a.csv", rows)
    assert parsed.text.count("word") < 30_000
    assert parsed.notes


# --- bombs ----------------------------------------------------------------------------------------

PARTS = {
    "a.docx": "word/document.xml",
    "a.odt": "content.xml",
    "a.pptx": "ppt/slides/slide1.xml",
    "a.xlsx": "xl/worksheets/sheet1.xml",
    "a.epub": "OEBPS/a.xhtml",
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_zip_bomb_of_any_kind_is_not_unpacked(refusal: Refusal, name: str) -> None:
    bomb = replaced(ZIPS[name](), PARTS[name], b"<a>" + b" " * 300_000_000)
    assert len(bomb) < 400_000
    assert in_time(lambda: refusal(name, bomb).code) == "too_large"


@pytest.mark.parametrize("name", ZIPS)
def test_xml_that_is_very_deep_ends(read: Read, name: str) -> None:
    """Parsers that go down by themselves run out of stack."""
    deep = b"<a>" * 200_000 + b"words" + b"</a>" * 200_000
    found = outcome(read, name, replaced(ZIPS[name](), PARTS[name], deep))
    assert found in REASONS | {"read", "out_of_memory"}


def head_of(kind: str, side: int) -> bytes:
    """A picture of that many pixels on a side, of which there is no more than its head."""
    data = bytearray(picture(kind))
    match kind:
        case "PNG":
            struct.pack_into(">II", data, 16, side, side)
        case "GIF":
            struct.pack_into("<HH", data, 6, side, side)
        case "BMP":
            struct.pack_into("<ii", data, 18, side, side)
        case "JPEG":
            place = data.index(b"\xff\xc0")
            struct.pack_into(">HH", data, place + 5, side, side)
        case "WEBP":
            return webp_of(side)
        case "TIFF":
            first = struct.unpack_from("<I", data, 4)[0] + 2
            for place in range(first, len(data) - 11, 12):
                if struct.unpack_from("<H", data, place)[0] in (256, 257):  # width, length
                    struct.pack_into("<HII", data, place + 2, 4, 1, side)
    return bytes(data)


def webp_of(side: int) -> bytes:
    body = b"VP8X" + struct.pack("<I", 10) + bytes(4)
    body += struct.pack("<I", side - 1)[:3] * 2
    body += b"VP8L" + struct.pack("<I", 6) + b"\x2f" + bytes(5)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


@pytest.mark.parametrize("kind", PICTURES.values())
def test_a_picture_of_too_many_pixels_is_refused_by_its_head(refusal: Refusal, kind: str) -> None:
    side = 16_383 if kind == "WEBP" else 60_000
    assert in_time(lambda: refusal("a", head_of(kind, side)).code) in ("too_large", "broken")


def test_a_film_is_one_picture_and_a_stack_of_pages_is_bounded(read: Read) -> None:
    pages = [Image.new("L", (50, 50), shade) for shade in range(8)]
    for kind in ("GIF", "TIFF"):
        file = io.BytesIO()
        pages[0].save(file, kind, save_all=True, append_images=pages[1:])
        assert outcome(read, "a", file.getvalue(), max_ocr_pages=5) in ("no_text", "ocr_missing")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", "[" * 300_000),
        ("a.md", "> " * 100_000 + "x"),
        ("a.md", "*a_ " * 300_000),
        ("a.md", "- " * 50_000 + "x"),
        ("a.md", "|" * 500_000 + "\n|-|\n"),
        ("a.csv", "," * 1_000_000),
        ("a.csv", '"' * 1_000_001),
        ("a.html", "<html><body><p " + "a=b " * 300_000 + ">words</p>"),
        ("a.html", "<html><body>" + "<b><i>" * 50_000 + "words"),
        ("a.html", "<html><body>" + "<table><tr><td>" * 20_000 + "words"),
        ("a.html", "<html><body><!--" + "-" * 1_000_000),
        ("a.py", "(" * 1_000_000),
        ("a.txt", "\u0301" * 1_000_000),
        ("a.txt", "\u202e" * 100_000 + "words"),
        ("a.eml", "From: a\nTo: b\nSubject: " + "=?utf-8?q?=61?= " * 50_000 + "\n\nwords"),
        ("a.eml", "From: a\nTo: " + "a@b.org, " * 100_000 + "\nSubject: c\n\nwords"),
        ("a.eml", "From: a\nTo: b\nSubject: c\nX: " + "(" * 300_000 + "\n\nwords"),
    ],
)
def test_what_makes_parsers_slow_ends(read: Read, name: str, data: str) -> None:
    found = outcome(read, name, data.encode(), timeout_s=SECONDS - 5, cpu_s=int(SECONDS) - 10)
    assert found in REASONS | {"read", "out_of_memory"}, "not timed_out: everybody waits behind it"
