"""Pictures of text, with tesseract and without."""

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont

from retrieval.parsing import Unreadable
from tests.retrieval.conftest import Read
from tests.retrieval.pdfs import PdfPage, make_pdf

needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="tesseract is not installed (Debian: tesseract-ocr)"
)
WORDS = PdfPage([(72, 700, 12, "Words in letters")])


def picture(words: str, side: int = 1000) -> Image.Image:
    image = Image.new("L", (side, side), "white")
    ImageDraw.Draw(image).text((60, 80), words, "black", ImageFont.load_default(48))
    return image


def saved(image: Image.Image, kind: str) -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.parsing.tesseract", lambda: "")


@pytest.mark.usefixtures("without")
def test_without_tesseract_a_scan_says_what_is_missing(
    read: Read, refusal: Callable[..., Unreadable]
) -> None:
    scan = PdfPage(image=picture("Glass").tobytes())
    assert refusal("a.pdf", make_pdf([scan])).code == "ocr_missing"
    assert "tesseract" in refusal("a.png", saved(picture("Glass"), "PNG")).message
    parsed = read("a.pdf", make_pdf([WORDS, scan, scan]))
    assert parsed.text == "Words in letters"
    (note,) = parsed.notes
    assert note.startswith("2 pages hold no text")


@needs_tesseract
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP"])
def test_a_picture_of_text_is_read(read: Read, kind: str) -> None:
    assert "transparent glass" in read("a", saved(picture("The transparent glass"), kind)).text


@needs_tesseract
def test_pages_without_text_are_read_one_by_one(read: Read) -> None:
    scan = PdfPage(image=picture("The transparent glass").tobytes())
    parsed = read("a.pdf", make_pdf([WORDS, scan, WORDS, scan]), max_ocr_pages=1)
    texts = [parsed.text[page.start : page.end] for page in parsed.pages]
    assert texts[0] == texts[2] == "Words in letters"
    assert "transparent glass" in texts[1]
    assert texts[3] == ""
    assert parsed.notes == ("1 page holds no text; of such pages only the first 1 were read.",)


@needs_tesseract
def test_an_unknown_language_is_told(refusal: Callable[..., Unreadable]) -> None:
    data = saved(picture("Glass"), "PNG")
    assert refusal("a.png", data, ocr_languages="xxx").code == "ocr_missing"
    assert refusal("a.png", data, ocr_languages="--help").code == "ocr_missing"


def test_a_tesseract_that_never_ends_ends_with_its_child(
    refusal: Callable[..., Unreadable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, nap = tmp_path / "tesseract", f"98.{os.getpid():07}"
    program.write_text(f"#!/bin/sh\nexec sleep {nap}\n")
    program.chmod(0o755)
    monkeypatch.setattr("retrieval.parsing.tesseract", lambda: str(program))
    assert refusal("a.png", saved(picture("Glass"), "PNG"), timeout_s=4).code == "timed_out"
    running = (process.info["cmdline"] for process in psutil.process_iter(["cmdline"]))
    assert ["sleep", nap] not in list(running)
