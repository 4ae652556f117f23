"""Pictures of text, by tesseract: a program that may be installed beside Vitrine."""

import re
import subprocess
from typing import Any

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.limits import Limits

_DPI = 200  # tesseract wants letters of some twenty pixels; more takes longer and reads no better
_EMPTY_LINES = re.compile(r"\n\s*\n")
_LANGUAGES = re.compile(r"[A-Za-z_]+(\+[A-Za-z_]+)*")


class Recognizer:
    """Reads one page after the other, as many as the limits allow."""

    def __init__(self, limits: Limits, program: str) -> None:
        self._limits = limits
        self._program = program
        self._num_read = 0

    def has_room(self) -> bool:
        return bool(self._program) and self._num_read < self._limits.max_ocr_pages

    def paragraphs_of(self, page: Any) -> list[str]:
        """Of a pypdfium2.PdfPage: what is seen on it. Raises Unreadable."""
        width_pt, height_pt = page.get_size()
        scale = _DPI / 72
        too_large = width_pt * height_pt * scale**2 / self._limits.max_pixels
        if too_large > 1:
            scale /= too_large**0.5
        bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False)
        return self.read(bitmap.width, bitmap.height, bitmap.stride, bytes(bitmap.buffer))

    def read(self, width: int, height: int, stride: int, gray: bytes) -> list[str]:
        """Paragraphs of a picture: rows of `stride` bytes, one for each pixel. Raises Unreadable."""
        self._num_read += 1
        rows = (gray[row * stride : row * stride + width] for row in range(height))
        return self._run(b"P5 %d %d 255\n" % (width, height) + b"".join(rows))

    def _run(self, picture: bytes) -> list[str]:
        languages = self._limits.ocr_languages
        if not _LANGUAGES.fullmatch(languages):
            raise Unreadable("ocr_missing", f"“{languages}” are no languages that tesseract knows.")
        ran = subprocess.run(  # noqa: S603 - the one program that the cage lets through
            [self._program, "stdin", "stdout", "-l", languages, "--dpi", str(_DPI)],
            input=picture,
            capture_output=True,
            executable=self._program,
            check=False,
        )
        if ran.returncode and b"loading language" in ran.stderr:
            message = f"Tesseract has no data for the languages “{languages}”."
            raise Unreadable("ocr_missing", message)
        if ran.returncode:
            return []  # a picture that it cannot read
        text = ran.stdout.decode("utf-8", "replace")
        return [paragraph for paragraph in _EMPTY_LINES.split(text) if paragraph.strip()]
