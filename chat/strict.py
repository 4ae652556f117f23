"""Bodies of /api whose fields are all known, and texts that a row can hold."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import AfterValidator, ConfigDict, StringConstraints, model_validator

from chat.storable import is_storable


class Body(Schema):
    """What programs send: it is validated as it is, and once.

    ninja's way is for rows as well. It reads each field through an object of its own, and where other
    fields are forbidden it validates twice, so of schemas within schemas the inner ones four and eight
    times.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: Any, info: Any) -> Any:
        return handler(values)


class Strict(Body):
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
