"""The file that is read, in the child."""

import mmap
import os
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from retrieval.parsing.encodings import decoded
from retrieval.parsing.limits import Limits


@dataclass(frozen=True)
class Source:
    """An open file, what its owner calls it, and what reading it may cost."""

    file: BinaryIO
    name: str
    limits: Limits
    tesseract: str

    @property
    def suffix(self) -> str:
        """The last part of the name: ".pdf", "" if there is none."""
        return os.path.splitext(self.name.lower())[1]

    @cached_property
    def mapped(self) -> mmap.mmap:
        """Its bytes, read as they are looked at. Written to they would change for this process only."""
        return mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_COPY)

    def head(self, size_bytes: int) -> bytes:
        return self.mapped[:size_bytes]

    @cached_property
    def data(self) -> bytes:
        return self.mapped[:]

    @cached_property
    def text(self) -> str:
        """Raises Unreadable where the bytes are no text in any encoding."""
        return decoded(self.data)
