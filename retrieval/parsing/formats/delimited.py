"""CSV and TSV: a table."""

import csv
import io

from retrieval.parsing.formats.plain import add_paragraphs
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, table

_SAMPLE_CHARS = 16_384
_DELIMITERS = ",;\t|"


def read(source: Source, writer: Writer) -> None:
    csv.field_size_limit(source.limits.max_chars)
    try:
        dialect = _dialect(source.text[:_SAMPLE_CHARS], source.suffix)
        rows, was_cut = _rows(source.text, dialect, source.limits.max_sheet_rows)
    except csv.Error:
        add_paragraphs(source.text, writer)  # the name alone said that it is a table
        return
    writer.page()
    writer.add(table(rows), "table")
    if was_cut:
        writer.note(f"Only the first {len(rows):,} rows were read.")


def _dialect(sample: str, suffix: str) -> type[csv.Dialect]:
    """The sniffer guesses at letters in a table of one column, so it is asked for delimiters only."""
    if suffix in (".tsv", ".tab") and "\t" in sample:
        return csv.excel_tab
    whole_lines = sample[: sample.rfind("\n") + 1] or sample
    try:
        found = csv.Sniffer().sniff(whole_lines, _DELIMITERS)
    except csv.Error:
        return csv.excel
    found.doublequote = True  # the sniffer says no where the sample has none
    return found


def _rows(text: str, dialect: type[csv.Dialect], max_rows: int) -> tuple[list[list[str]], bool]:
    rows: list[list[str]] = []
    # As they are: a quoted cell may hold line ends.
    for row in csv.reader(io.StringIO(text.replace("\0", ""), newline=""), dialect):
        if any(cell.strip() for cell in row):
            if len(rows) == max_rows:
                return rows, True
            rows.append(row)
    return rows, False
