"""What Postgres can store as text: anything but NUL and halves of characters (lone surrogates)."""

import re
from typing import Any

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    return _NOT_STORABLE.search(text) is None


def storable(text: str) -> str:
    """The text with the replacement character in place of what cannot be stored."""
    return _NOT_STORABLE.sub("\ufffd", text)


def storable_value(value: Any) -> Any:
    """JSON in which every text is."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): storable_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable_value(item) for item in value]
    return value
