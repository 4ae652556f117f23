"""What Postgres can store as text: anything but NUL and halves of characters (lone surrogates)."""

import re

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    return _NOT_STORABLE.search(text) is None


def storable(text: str) -> str:
    """The text with the replacement character in place of what cannot be stored."""
    return _NOT_STORABLE.sub("\ufffd", text)
