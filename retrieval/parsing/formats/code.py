"""Source code and configuration: one block, kept to the character."""

from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer


def read(source: Source, writer: Writer) -> None:
    writer.page()
    writer.add(source.text, "code")
    writer.title = source.name
