"""Bodies of /api whose fields are all known, and texts that a row can hold."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import AfterValidator, ConfigDict, StringConstraints

from chat.storable import is_storable


class Strict(Schema):
    """A field that is not known is a mistake, never ignored."""

    model_config = ConfigDict(extra="forbid")


def text_of(max_chars: int, min_chars: int = 0) -> Any:
    """A text without white space around it."""
    limits = StringConstraints(max_length=max_chars, min_length=min_chars, strip_whitespace=True)
    return Annotated[str, limits, AfterValidator(_storable)]


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("holds a character that cannot be stored")
    return text.strip()
