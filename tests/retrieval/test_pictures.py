"""A page as a picture: small, upright, and drawn anew."""

import io
import random
from pathlib import Path

import pytest
from PIL import Image

from retrieval.parsing import Limits, Unreadable, picture
from tests.retrieval.pdfs import PdfPage, make_pdf

LINES = [(72.0, 700.0, 24.0, "Glass")]


def seen(path: Path, page_number: int = 1, width_px: int = 300) -> Image.Image:
    image = Image.open(io.BytesIO(picture(path, page_number, width_px).data))
    assert image.format == "WEBP"
    return image.convert("RGB")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def saved(path: Path, image: Image.Image, kind: str, **more: object) -> Path:
    image.save(path, kind, **more)
    return path


def test_a_page_of_a_pdf_is_as_wide_as_asked_and_shows_its_words(path: Path) -> None:
    path.write_bytes(make_pdf([PdfPage(), PdfPage(LINES)]))
    assert seen(path, 1).getextrema() == ((255, 255), (255, 255), (255, 255))
    page = seen(path, 2)
    assert page.size == pytest.approx((300, 388), abs=1)
    words = page.convert("L").point(lambda value: 255 * (value < 128)).getbbox()
    assert words is not None
    scale = 300 / 612
    assert words[0] == pytest.approx(72 * scale, abs=3)
    assert words[3] == pytest.approx((792 - 700) * scale, abs=3)


def test_a_page_is_shown_as_it_is_turned(path: Path) -> None:
    path.write_bytes(make_pdf([PdfPage(LINES, rotate=90)]))
    width, height = seen(path).size
    assert width > height


def test_pictures_are_made_smaller_and_never_larger(path: Path) -> None:
    saved(path, Image.new("RGB", (640, 480), "teal"), "PNG")
    assert seen(path, width_px=320).size == (320, 240)
    assert seen(path, width_px=2000).size == (640, 480)


def test_a_photograph_is_upright_and_tells_nothing_of_where_it_was_taken(path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned
    exif[0x010E] = "a secret place"
    saved(path, Image.new("RGB", (400, 200)), "JPEG", exif=exif)
    assert seen(path).size == (200, 400)
    assert b"secret" not in picture(path, 1, 300).data


def test_what_is_transparent_is_white(path: Path) -> None:
    saved(path, Image.new("RGBA", (20, 20), (0, 0, 0, 0)), "PNG")
    assert seen(path).getpixel((5, 5)) == (255, 255, 255)


def test_a_tiff_has_pages(path: Path) -> None:
    red, blue = (Image.new("RGB", (30, 30), colour) for colour in ("red", "blue"))
    saved(path, red, "TIFF", save_all=True, append_images=[blue])
    pixel = seen(path, 2).getpixel((9, 9))
    assert isinstance(pixel, tuple)
    assert pixel[2] > 200 > 60 > pixel[0]
    with pytest.raises(Unreadable, match="no page 3"):
        picture(path, 3, 300)


def test_a_strip_of_a_page_has_no_more_pixels_than_others(path: Path) -> None:
    path.write_bytes(make_pdf([PdfPage(LINES, width_pt=20, height_pt=14_000)]))
    width, height = seen(path, width_px=2000).size
    assert width * height <= 8_100_000
    assert height <= 16_383


def test_what_cannot_be_shown_says_why(path: Path) -> None:
    def refusal(data: bytes, page_number: int = 1, **limits: float) -> Unreadable:
        path.write_bytes(data)
        with pytest.raises(Unreadable) as raised:
            picture(path, page_number, 300, limits=Limits(**limits))  # type: ignore[arg-type]
        return raised.value

    good = make_pdf([PdfPage(LINES)])
    assert refusal(b"words").code == "unsupported_type"
    assert refusal(good, 2).message == "The file has no page 2."
    assert refusal(good, 0).code == "broken"
    assert refusal(good[:300]).code == "broken"
    assert refusal(make_pdf([PdfPage(LINES)], password="pw")).code == "encrypted"
    large = io.BytesIO()
    Image.new("1", (9000, 9000)).save(large, "PNG")
    assert refusal(large.getvalue()).code == "too_large"
    assert refusal(large.getvalue()[:400] + b"x" * 50, max_pixels=10**9).code == "broken"
    assert refusal(good, timeout_s=0.01).code == "timed_out"


def test_damaged_pages_harm_nobody(path: Path) -> None:
    chance = random.Random(7)
    for _ in range(4):
        data = bytearray(make_pdf([PdfPage(LINES)]))
        for _ in range(20):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            seen(path)
        except Unreadable as error:
            assert error.message


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_shades_of_more_than_a_byte_are_seen(path: Path, mode: str) -> None:
    ramp = Image.new(mode, (256, 8))
    values = [number * 257 for number in range(256)] * 8
    ramp.putdata(values)
    shades = seen(saved(path, ramp, "TIFF")).convert("L")
    row = [shades.getpixel((x, 4)) for x in (0, 64, 128, 255)]
    assert row == pytest.approx([0, 64, 128, 255], abs=6)


def test_for_a_model_no_side_is_longer_and_it_is_a_jpeg(path: Path) -> None:
    saved(path, Image.new("CMYK", (300, 900)), "TIFF")
    image = Image.open(io.BytesIO(picture(path, 1, 450, for_model=True).data))
    assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (150, 450))
