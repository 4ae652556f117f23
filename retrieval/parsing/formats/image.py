"""A picture of text: a photograph or a scan, through OCR."""

import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.ocr import Recognizer
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer

# Pillow knows dozens, of which some start programs.
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP")
BROKEN = (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError)


def read(source: Source, writer: Writer) -> None:
    recognizer = Recognizer(source.limits, source.tesseract)
    image = opened(source)
    if not recognizer.has_room():
        why = "the program that reads it (tesseract) is not installed"
        raise Unreadable("ocr_missing", f"This is a picture, and {why}.")
    num_frames = min(getattr(image, "n_frames", 1), source.limits.max_pages)
    for number in range(num_frames if image.format == "TIFF" else 1):  # of a GIF the first
        if not recognizer.has_room():
            writer.note(f"Only the first {number:,} pages were read.")
            break
        image.seek(number)
        check_size(image, source.limits.max_pixels)
        _add(image, recognizer, writer)


def opened(source: Source) -> Image.Image:
    """Its head only: how large it is is known before it is unpacked."""
    Image.MAX_IMAGE_PIXELS = None  # ours is another limit, and Pillow's first step is a warning
    warnings.simplefilter("ignore")
    try:
        image = Image.open(source.file, formats=_FORMATS)
    except BROKEN as error:
        raise Unreadable("broken", "The picture is damaged.") from error
    check_size(image, source.limits.max_pixels)
    return image


def check_size(image: Image.Image, max_pixels: int) -> None:
    if image.width * image.height > max_pixels:
        most = max_pixels // 1_000_000
        raise Unreadable("too_large", f"The picture has more than {most} million pixels.")


def of_bytes(image: Image.Image) -> Image.Image:
    """Grey values of 16 bits, or any numbers (scans, X-rays), as bytes: Pillow would cut them at 255."""
    if not image.mode.startswith(("I", "F")):
        return image
    if image.mode.startswith("I;16"):
        darkest, brightest = 0.0, 65_535.0
    else:
        darkest, brightest = map(float, image.getextrema())  # type: ignore[arg-type]
    scale = 255 / (brightest - darkest) if brightest > darkest else 0.0
    return image.convert("F").point(lambda value: value * scale - darkest * scale).convert("L")


def _add(image: Image.Image, recognizer: Recognizer, writer: Writer) -> None:
    try:
        upright = of_bytes(ImageOps.exif_transpose(image) or image)
        gray = upright.convert("L")
    except BROKEN as error:
        raise Unreadable("broken", "The picture is damaged.") from error
    writer.page()
    for paragraph in recognizer.read(gray.width, gray.height, gray.width, gray.tobytes()):
        writer.add(paragraph)
