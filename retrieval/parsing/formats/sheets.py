"""XLSX: a page for each sheet, as a table of what its cells show; formulas are their last results."""

import datetime
import re
import sys
import zipfile
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import ParseError

# openpyxl imports numpy if it can, which takes as long as all the rest. Only a child imports this.
sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]

import openpyxl  # noqa: E402
from openpyxl.utils.exceptions import InvalidFileException  # noqa: E402

from retrieval.parsing.errors import Unreadable  # noqa: E402
from retrieval.parsing.formats.number_formats import number_text  # noqa: E402
from retrieval.parsing.packed import opened_zip  # noqa: E402
from retrieval.parsing.source import Source  # noqa: E402
from retrieval.parsing.writer import Writer, table  # noqa: E402

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_WITHOUT_RESULT = re.compile(
    rb'<c(?![^<>]*\st="str")(?:\s[^<>]*)?>\s*<f(?:\s[^<>]*)?(?:/>|>[^<]*</f>)\s*'
    rb"(?:<v\s*/>|<v>\s*</v>)?\s*</c>"
)
_NO_RESULTS = "Formulas without results were left out. Save the file in a spreadsheet program."
_PIECE_BYTES = 2**20
_MAX_CELL_BYTES = 2**14
_MAX_COLUMNS = 500
_MAX_NAMED = 10
_MAX_EMPTY_ROWS = 10_000  # between rows; a sheet may be formatted to its last one


def read(source: Source, writer: Writer) -> None:
    try:
        with opened_zip(source) as packed:
            if any(_lacks_results(packed, name) for name in packed.namelist()):
                writer.note(_NO_RESULTS)
        source.file.seek(0)
        book = openpyxl.load_workbook(source.file, read_only=True, data_only=True, keep_links=False)
        writer.title = book.properties.title or ""
        for sheet in _visible(book.worksheets, writer):
            _add_sheet(sheet, writer, source.limits.max_sheet_rows)
    except (
        KeyError,
        IndexError,
        ValueError,
        TypeError,
        ParseError,
        InvalidFileException,
        zipfile.BadZipFile,
    ) as error:
        message = "The workbook is damaged: a part of it is missing or wrong."
        raise Unreadable("broken", message) from error


def _visible(sheets: list[Any], writer: Writer) -> list[Any]:
    hidden = [sheet for sheet in sheets if sheet.sheet_state != "visible"]
    if not hidden or len(hidden) == len(sheets):
        return sheets
    names = ", ".join(f"“{sheet.title}”" for sheet in hidden[:_MAX_NAMED])
    more = ", …" if len(hidden) > _MAX_NAMED else ""
    writer.note(f"Hidden sheets were left out: {names}{more}.")
    return [sheet for sheet in sheets if sheet.sheet_state == "visible"]


def _lacks_results(packed: zipfile.ZipFile, name: str) -> bool:
    """Whether a part is a sheet with formulas that nobody has computed, as programs write them. An empty
    text is a result."""
    if not _SHEET.fullmatch(name):
        return False
    with packed.open(name) as part:
        piece = b""
        while data := part.read(_PIECE_BYTES):
            piece += data
            if _WITHOUT_RESULT.search(piece):
                return True
            piece = piece[-_MAX_CELL_BYTES:]
    return False


def _add_sheet(sheet: Any, writer: Writer, max_rows: int) -> None:
    writer.page(sheet.title)
    sheet.reset_dimensions()  # what a sheet says of its size pads every row to it
    rows: list[list[str]] = []
    for row in _filled_rows(sheet):
        if len(rows) == max_rows:
            writer.note(f"Of the sheet “{sheet.title}” only the first {max_rows:,} rows were read.")
            break
        if len(row) > _MAX_COLUMNS:
            row = row[:_MAX_COLUMNS]
            writer.note(f"Of the sheet “{sheet.title}” only {_MAX_COLUMNS} columns were read.")
        rows.append(row)
    if rows:
        writer.add(sheet.title, "heading", 1)
        writer.add(table(_without_empty_columns(rows)), "table")


def _filled_rows(sheet: Any) -> Iterator[list[str]]:
    num_empty = 0
    for cells in sheet.iter_rows():
        row = [_shown(cell) for cell in cells]
        while row and not row[-1].strip():
            row.pop()
        if row:
            num_empty = 0
            yield row
        elif (num_empty := num_empty + 1) > _MAX_EMPTY_ROWS:
            return


def _without_empty_columns(rows: list[list[str]]) -> list[list[str]]:
    filled = sorted({index for row in rows for index, cell in enumerate(row) if cell.strip()})
    return [[row[index] if index < len(row) else "" for index in filled] for row in rows]


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value, cell.number_format)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return str(value)
