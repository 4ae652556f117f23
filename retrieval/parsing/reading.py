"""A file to its text, in the child."""

import os
from importlib import import_module

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.kinds import READERS, kind_of
from retrieval.parsing.messages import Request
from retrieval.parsing.pages import Parsed
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer


def read(request: Request) -> Parsed:
    """Raises Unreadable, and whatever a library raises for a damaged file."""
    with os.fdopen(request.fd, "rb") as file:
        source = Source(file, request.name, request.limits, request.tesseract)
        media_type = kind_of(source)
        writer = Writer(request.limits)
        # Imports only the one library that is needed: that is most of the start.
        reader = import_module(f"retrieval.parsing.formats.{READERS[media_type]}")
        try:
            reader.read(source, writer)
        except RecursionError as error:
            raise Unreadable("broken", "The file is nested too deeply to be read.") from error
        return writer.parsed(media_type, request.name)
