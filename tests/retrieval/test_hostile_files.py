"""Broken, locked, empty, huge and hostile files: each ends with a reason, soon, and harms nobody."""

import io
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from retrieval.parsing import Unreadable
from tests.retrieval.conftest import Read
from tests.retrieval.office import (
    make_docx,
    make_epub,
    make_pptx,
    make_xlsx,
    make_zip,
    replaced,
)
from tests.retrieval.pdfs import PdfPage, make_pdf

Refusal = Callable[..., Unreadable]
MAKERS = {
    "a.pdf": lambda: make_pdf([PdfPage([(72, 700, 12, "Words")])]),
    "a.docx": make_docx,
    "a.pptx": make_pptx,
    "a.xlsx": make_xlsx,
    "a.epub": lambda: make_epub({"a.xhtml": "<p>Words</p>"}),
}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("report.pdf", b"MZ\x90\0\x03\0\0\0" + bytes(100)),
        ("notes.txt", Path("/bin/sh").read_bytes()[:5000]),
        ("a.csv", random.Random(1).randbytes(5000)),
        ("a.docx", b"\x1f\x8b\x08" + bytes(50)),
        ("a.docx", make_zip({"a.txt": "words", "b.txt": "words"})),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)),
        ("a.rtf", b"{\\rtf1 Words}"),
        ("a.wasm", b"\0asm\x01\0\0\0"),
    ],
)
def test_what_is_none_of_the_kinds_is_refused_whatever_its_name(
    refusal: Refusal, name: str, data: bytes
) -> None:
    assert refusal(name, data).code == "unsupported_type"


@pytest.mark.parametrize("name", MAKERS)
def test_half_a_file_is_broken(refusal: Refusal, name: str) -> None:
    data = MAKERS[name]()
    assert refusal(name, data[: len(data) // 2]).code == "broken"


@pytest.mark.parametrize("name", MAKERS)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(read: Read, name: str) -> None:
    """Bytes changed at random places: whatever a library raises becomes a reason."""
    chance = random.Random(name)
    for _ in range(2):
        data = bytearray(MAKERS[name]())
        for _ in range(20):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        try:
            read(name, bytes(data), timeout_s=60)
        except Unreadable as error:
            assert error.code in ("broken", "encrypted", "no_text", "too_large", "unsupported_type")


def test_nothing_and_no_words_are_told_apart(refusal: Refusal) -> None:
    assert refusal("a.pdf", b"").code == "empty"
    assert refusal("a.txt", b" \n\t\n").code == "no_text"
    assert refusal("a.pdf", make_pdf([PdfPage(stream=b" ")])).code == "no_text"


def test_what_has_a_password_says_so(refusal: Refusal) -> None:
    assert (
        refusal("a.pdf", make_pdf([PdfPage([(72, 700, 12, "x")])], password="pw")).code
        == "encrypted"
    )
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "EncryptedPackage".encode("utf-16-le")
    assert refusal("a.xlsx", ole).code == "encrypted"
    drm = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData'
        ' xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod'
        ' Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>'
    )
    assert refusal("a.epub", make_epub({"a.xhtml": "x"}, encryption=drm)).code == "encrypted"


def test_limits_of_size_pages_and_text(refusal: Refusal) -> None:
    assert refusal("a.txt", b"x" * 100, max_file_bytes=99).code == "too_large"
    assert refusal("a.txt", b"x" * 100, max_chars=99).code == "too_large"
    pages = make_pdf([PdfPage([(72, 700, 12, "Words")])] * 4)
    assert refusal("a.pdf", pages, max_pages=3).code == "too_many_pages"
    assert refusal("a.pdf", pages, max_chars=10).code == "too_large"
    assert refusal("a.txt", "x\f" * 4, max_pages=3).code == "too_many_pages"


# --- zips -------------------------------------------------------------------------------------


def test_a_zip_bomb_is_not_unpacked(refusal: Refusal) -> None:
    bomb = replaced(make_docx(), "word/media/x.xml", b" " * 30_000_000)
    assert refusal("a.docx", bomb).code == "too_large"
    mild = replaced(make_docx(), "word/media/x.xml", random.Random(1).randbytes(3_000_000))
    assert refusal("a.docx", mild, max_unpacked_bytes=2_000_000).code == "too_large"


def test_a_zip_of_very_many_parts_is_refused(refusal: Refusal) -> None:
    many: dict[str, bytes | str] = {f"word/{number}": "" for number in range(3000)}
    made = make_zip({"[Content_Types].xml": "<x/>", **many})
    assert refusal("a.docx", made, max_members=2000).code == "too_large"


def test_parts_of_a_zip_that_share_bytes_are_refused(refusal: Refusal) -> None:
    """The index of a good zip, with each entry twice at the same place."""
    data = make_docx()
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        start = packed.start_dir
    end = data.rindex(b"PK\x05\x06")
    index = data[start:end]
    count = struct.unpack_from("<H", data, end + 10)[0]
    tail = bytearray(data[end:])
    struct.pack_into("<HHI", tail, 8, 2 * count, 2 * count, 2 * len(index))
    assert refusal("a.docx", data[:start] + index + index + bytes(tail)).code == "broken"


def test_a_part_that_is_larger_than_it_says_is_not_read_on(refusal: Refusal) -> None:
    data = make_zip({"[Content_Types].xml": "<x/>", "word/document.xml": b"<a>" + b"x" * 1_000_000})
    place = data.rindex(b"PK\x01\x02")
    lying = bytearray(data)
    struct.pack_into("<I", lying, place + 24, 10)
    assert refusal("a.docx", bytes(lying)).code == "broken"


# --- XML --------------------------------------------------------------------------------------

LAUGHS = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + b"".join(
    b'<!ENTITY %c "&%c;&%c;&%c;&%c;&%c;&%c;&%c;&%c;">' % (n + 1, n, n, n, n, n, n, n, n)
    for n in range(ord("a"), ord("p"))
)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a.docx", "word/document.xml"),
        ("a.docx", "[Content_Types].xml"),
        ("a.pptx", "ppt/presentation.xml"),
        ("a.xlsx", "xl/workbook.xml"),
        ("a.xlsx", "xl/worksheets/sheet1.xml"),
        ("a.xlsx", "xl/sharedStrings.xml"),
        ("a.epub", "OEBPS/book.opf"),
    ],
)
def test_entities_are_neither_expanded_nor_fetched(
    refusal: Refusal, tmp_path: Path, name: str, part: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret of the machine")
    outside = f'<!DOCTYPE r [<!ENTITY p SYSTEM "file://{secret}">]><r>&p;</r>'.encode()
    for xml in (LAUGHS + b"]><l>&p;</l>", outside):
        error = refusal(name, replaced(MAKERS[name](), part, xml), timeout_s=60)
        assert error.code in ("broken", "no_text")
        assert "secret" not in error.message


def test_entities_of_web_pages_and_chapters_reach_no_file(read: Read, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret of the machine")
    page = (
        f'<!DOCTYPE html [<!ENTITY p SYSTEM "file://{secret}">]><html><body><p>Words &p;</p>'
        f'<object data="file://{secret}"></object><iframe src="{secret}"></iframe></body></html>'
    )
    assert "secret" not in read("a.html", page).text
    assert "secret" not in read("a.xml", page.replace("html", "x")).text.replace(str(secret), "")
    chapter = '<p>Words</p><img src="http://127.0.0.1:9/x.png"/>'
    assert read("a.epub", make_epub({"a.xhtml": chapter})).text == "Words"


# --- pages, pictures, depth -------------------------------------------------------------------


def test_a_pdf_stream_that_unpacks_without_end_is_stopped(refusal: Refusal) -> None:
    stream = b"BT /F1 12 Tf (words) Tj ET " * 10_000_000
    bomb = make_pdf([PdfPage(stream=stream)])
    assert len(bomb) < 2_000_000
    error = refusal("a.pdf", bomb, memory_bytes=200 * 2**20, cpu_s=2, timeout_s=60)
    assert error.code in ("out_of_memory", "timed_out", "broken", "too_large")


def test_a_pdf_whose_pages_are_their_own_parents_ends(refusal: Refusal) -> None:
    loop = make_pdf([PdfPage([(72, 700, 12, "Words")])]).replace(
        b"/Kids [10 0 R]", b"/Kids [ 2 0 R]"
    )
    assert refusal("a.pdf", loop, timeout_s=60).code in ("broken", "no_text")


def huge_png(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_picture_of_ten_thousand_million_pixels_is_refused_by_its_head(refusal: Refusal) -> None:
    assert refusal("a.png", huge_png(100_000)).code == "too_large"


def test_a_broken_picture_is_broken(refusal: Refusal) -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(file, "PNG")
    assert refusal("a.png", file.getvalue()[:20]).code == "broken"


def test_deep_nesting_ends(read: Read, refusal: Refusal) -> None:
    deep = "<div>" * 100_000 + "Words" + "</div>" * 100_000
    try:
        assert read("a.html", f"<html><body>{deep}<p>And more words.</p>", timeout_s=60).text
    except Unreadable as error:
        assert error.code in ("broken", "no_text", "out_of_memory")
    head = b"From: a\nTo: b\nSubject: c\nMIME-Version: 1.0\n"
    parts = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (level, level)
        for level in range(3000)
    )
    assert refusal("a.eml", head + parts, timeout_s=60).code in ("broken", "no_text")


# --- the child --------------------------------------------------------------------------------


def test_time_and_memory_end_the_child_and_not_us(refusal: Refusal) -> None:
    pages = make_pdf([PdfPage([(72, 700, 12, "Words")])] * 50)
    assert refusal("a.pdf", pages, timeout_s=0.01).code == "timed_out"
    words = "\n\n".join(f"Paragraph {number}." for number in range(200_000))
    assert refusal("a.txt", words, memory_bytes=60 * 2**20).code == "out_of_memory"


def test_a_child_that_is_killed_is_a_reason(
    refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval.parsing import process

    for end, code in (
        ("os.kill(os.getpid(), 9)", "out_of_memory"),
        ("os.kill(os.getpid(), 11)", "broken"),
        ("os.kill(os.getpid(), 24)", "timed_out"),
        ("os._exit(0)", "broken"),
        ("os.write(1, b'\\0' * 7 + b'\\x02{}')", "broken"),
        ("os.write(1, b'\\xff' * 100)", "broken"),
    ):
        monkeypatch.setattr(process, "_COMMAND", ["-c", f"import os; {end}"])
        assert refusal("a.txt", b"words").code == code


def test_the_child_has_no_secret_no_network_and_no_pen(tmp_path: Path) -> None:
    """What a library could do that has been taken over, short of machine code."""
    from retrieval.parsing.limits import Limits
    from retrieval.parsing.process import environment

    os.environ["VITRINE_TEST_SECRET"] = "s3cret"
    try:
        assert "s3cret" not in str(environment(tmp_path))
    finally:
        del os.environ["VITRINE_TEST_SECRET"]
    tries = (
        "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
        f"open({str(tmp_path / 'x')!r}, 'w')",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import os; os.system('true')",
        "import os; os.execv('/bin/true', ['true'])",
    )
    import subprocess
    import sys

    head = (
        "from retrieval.parsing.cage import close_cage; from retrieval.parsing.limits import Limits;"
        f"close_cage({Limits()!r}, may_start='')\n"
    )
    for one in tries:
        script = f"{head}try:\n    {one}\nexcept PermissionError:\n    print('refused')"
        ran = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            check=False,
        )
        assert ran.stdout == "refused\n", (one, ran.stderr)
    assert not (tmp_path / "x").exists()
