"""What may be said of a file that cannot be read."""

from typing import Literal, get_args

Code = Literal[
    "encrypted",
    "broken",
    "empty",
    "too_large",
    "too_many_pages",
    "timed_out",
    "out_of_memory",
    "unsupported_type",
    "no_text",
    "ocr_missing",
]
CODES: frozenset[str] = frozenset(get_args(Code))


class Unreadable(Exception):
    """No text could be had of a file. `code` is for programs, `message` a sentence for its owner."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def locked() -> Unreadable:
    return Unreadable("encrypted", "The file is protected by a password. Save it without one.")
