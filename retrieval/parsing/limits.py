"""How much a file may cost. docs/retrieval.md says why these numbers."""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one file. What is over a limit is Unreadable, but for sheets, nested messages and OCR: there
    the rest is left out, and a note says so."""

    max_file_bytes: int = 256 * MIB
    max_chars: int = 5_000_000  # of text, of the whole document
    max_pages: int = 5_000
    max_sheet_rows: int = 20_000  # of one sheet; longer ones are cut
    # Of a zip, which is what office files are: what its members say they hold.
    max_members: int = 10_000
    max_unpacked_bytes: int = 512 * MIB
    max_ratio: int = 200  # unpacked to packed, of members over 1 MiB
    max_depth: int = 8  # of messages in messages
    # The child
    memory_bytes: int = 1536 * MIB  # of address space
    cpu_s: int = 120
    timeout_s: float = 180.0
    # OCR
    ocr_languages: str = "eng"  # as tesseract takes them: "deu+eng"
    max_ocr_pages: int = 200
    max_pixels: int = 40_000_000  # of one picture; a rendered page is made smaller instead
