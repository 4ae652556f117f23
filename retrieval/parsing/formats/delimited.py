"""CSV and TSV: a table."""

import csv
import io
import re
from collections import Counter

from retrieval.parsing.formats.plain import add_paragraphs
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, table

_SAMPLE_CHARS = 16_384
_DIVIDERS = "\t;|,"  # of two that fit the rarer one: texts and numbers hold commas
_QUOTED = re.compile(r'(?:^|(?<=[,;\t|]))( *)"(?>(?:[^"]|"")*)" *(?=[,;\t|\n]|$)', re.MULTILINE)
_TOLD = re.compile(r'\ufeff?"?sep=(\t|[^\w\s"])"?(?:\r\n?|\n)', re.IGNORECASE)
_COMMA_OF_NUMBER = re.compile(r"(?<=\d),(?=\d)")


def read(source: Source, writer: Writer) -> None:
    csv.field_size_limit(source.limits.max_chars)
    told = _TOLD.match(source.text)  # a line for Excel, and no row
    text = source.text[told.end() :] if told else source.text
    try:
        dialect = _dialect(text[:_SAMPLE_CHARS], told[1] if told else _usual(source))
        rows, was_cut = _rows(text, dialect, source.limits.max_sheet_rows)
    except csv.Error:
        add_paragraphs(source.text, writer)  # the name alone said that it is a table
        return
    writer.page()
    writer.add(table(rows), "table")
    if was_cut:
        writer.note(f"Only the first {len(rows):,} rows were read.")


def _usual(source: Source) -> str:
    is_tabbed = source.suffix in (".tsv", ".tab") and "\t" in source.text[:_SAMPLE_CHARS]
    return "\t" if is_tabbed else ""


def _dialect(sample: str, divider: str) -> type[csv.Dialect]:
    """csv.Sniffer guesses at what quotes as well, and takes an apostrophe for it."""
    sample = sample.replace("\r\n", "\n").replace("\r", "\n")
    whole_lines = sample[: sample.rfind("\n") + 1] or sample

    class Found(csv.excel):
        delimiter = divider or _divider(whole_lines)
        skipinitialspace = any(quoted[1] for quoted in _QUOTED.finditer(whole_lines))

    return Found


def _divider(sample: str) -> str:
    """By which most lines have equally many columns, of such as many as can be; else the comma."""
    plain = _COMMA_OF_NUMBER.sub(".", _QUOTED.sub("_", sample))
    lines = [line for line in plain.split("\n") if line.strip()]
    best, found = (0, 0), ","
    for divider in _DIVIDERS:
        widths = Counter(line.count(divider) + 1 for line in lines)
        num_lines, width = max(((num, width) for width, num in widths.items()), default=(0, 1))
        if width > 1 and (num_lines, width) > best:
            best, found = (num_lines, width), divider
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
