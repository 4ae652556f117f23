"""A page as people see it: of a PDF, or of a file that is a picture."""

import io
import os
from math import sqrt

import pypdfium2
from PIL import Image, ImageOps

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.formats import image
from retrieval.parsing.formats.pdf_text import opened_pdf, page_of
from retrieval.parsing.kinds import PDF, READERS, kind_of
from retrieval.parsing.messages import Request
from retrieval.parsing.pages import Picture
from retrieval.parsing.source import Source

_MAX_PIXELS = 8_000_000
_MAX_SIDE_PX = 16_383  # of a WebP
_QUALITY = 82


def picture(request: Request) -> Picture:
    """Raises Unreadable, and whatever a library raises for a damaged file."""
    with os.fdopen(request.fd, "rb") as file:
        source = Source(file, request.name, request.limits, request.tesseract)
        kind = kind_of(source)
        if kind == PDF:
            return _encoded(_page_of_pdf(source, request.page_number, request.width_px), request)
        if READERS[kind] == "image":
            return _encoded(_page_of_image(source, request.page_number, request.width_px), request)
        raise Unreadable("unsupported_type", "Of such a file there is no picture.")


def _page_of_pdf(source: Source, page_number: int, width_px: int) -> Image.Image:
    with opened_pdf(source) as document:
        if not 1 <= page_number <= len(document):
            raise _no_page(page_number)
        try:
            page = page_of(document, page_number - 1)
        except pypdfium2.PdfiumError as error:
            raise Unreadable("broken", f"Page {page_number} is damaged.") from error
        width_pt, height_pt = page.get_size()
        if not (width_pt > 0 and height_pt > 0):
            raise Unreadable("broken", f"Page {page_number} has no size.")
        scale = _fitting(width_px, height_pt / width_pt) / width_pt
        bitmap = page.render(scale=scale, may_draw_forms=False)
        drawn: Image.Image = bitmap.to_pil()
        return drawn.convert("RGB")


def _page_of_image(source: Source, page_number: int, width_px: int) -> Image.Image:
    found = image.opened(source)
    num_pages = getattr(found, "n_frames", 1) if found.format == "TIFF" else 1
    if not 1 <= page_number <= num_pages:
        raise _no_page(page_number)
    found.seek(page_number - 1)
    image.check_size(found, source.limits.max_pixels)
    found.draft("RGB", (2 * width_px, 2 * width_px))  # a JPEG is unpacked no larger than needed
    try:
        upright = image.of_bytes(ImageOps.exif_transpose(found) or found)
        seen = upright.convert("RGBA") if upright.has_transparency_data else upright.convert("RGB")
    except image.BROKEN as error:
        raise Unreadable("broken", "The picture is damaged.") from error
    if seen.mode == "RGBA":
        seen = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")
    width = _fitting(min(width_px, seen.width), seen.height / seen.width)
    return seen.resize((max(1, int(width)), max(1, int(width * seen.height / seen.width))))


def _fitting(width_px: int, height_to_width: float) -> float:
    """A width at which there are not too many pixels, whatever form the page has."""
    most = min(sqrt(_MAX_PIXELS / height_to_width), _MAX_SIDE_PX / max(1.0, height_to_width))
    return min(float(width_px), most)


def _encoded(drawn: Image.Image, request: Request) -> Picture:
    data = io.BytesIO()
    if request.for_model:
        drawn.thumbnail((request.width_px, request.width_px))
        drawn.save(data, "JPEG", quality=_QUALITY)
    else:
        drawn.save(data, "WEBP", quality=_QUALITY, method=2)
    return Picture(data.getvalue())


def _no_page(page_number: int) -> Unreadable:
    return Unreadable("broken", f"The file has no page {page_number}.")
